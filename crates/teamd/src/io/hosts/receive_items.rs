//! Stores the items that the other host has sent.

use crate::io::hosts::shared_mirror::SharedMirror;
use link::{ItemReceiver, ReceivedPosition};
use protocol::annex_link::{ItemPayload, LinkItem};
use protocol::error_kind_and_report::ErrorReport;
use std::sync::Arc;
use store::StateDir;
use tokio::sync::oneshot;

/// The file with the position of the last stored item.
const POSITION: &str = "received.json";
/// Length of its content, with spaces at the end. Two numbers of 20 digits fit.
const POSITION_BYTES: usize = 80;

/// Stores each received item with the mirrors, and then writes the number of the item to a file,
/// the position. After a crash, the other host sends the items after this position again. This is
/// at most one item that is stored already, and the mirrors recognize it. If several items were
/// repeated, the first of them would bring back an older state of the team.
#[derive(Debug)]
pub(super) struct MirrorReceiver {
    mirror: SharedMirror,
    directory: StateDir,
    position: ReceivedPosition,
    /// The number of the last item that the mirrors have stored. The position in the file may be
    /// lower.
    applied: u64,
    /// Dropped with the receiver, after its last write.
    _ended: oneshot::Sender<()>,
}

impl MirrorReceiver {
    /// Opens the receiver with its file in `directory`. The returned channel closes when the
    /// receiver is dropped.
    ///
    /// # Errors
    ///
    /// If the file can't be read or created.
    pub(super) fn open(
        mirror: SharedMirror,
        directory: StateDir,
    ) -> Result<(MirrorReceiver, oneshot::Receiver<()>), ErrorReport> {
        let position = match directory.read(POSITION)? {
            Some(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| ErrorReport::from_io("read", &directory.path().join(POSITION), &error))?,
            None => {
                // The file must exist on the disk before it is overwritten in place.
                let none = ReceivedPosition::default();
                directory.replace(POSITION, &position_bytes(none))?;
                none
            }
        };
        let (ended, end) = oneshot::channel();
        let receiver =
            MirrorReceiver { mirror, directory, position, applied: position.number, _ended: ended };
        Ok((receiver, end))
    }
}

impl MirrorReceiver {
    /// Stores one item. For a barrier, compares all files first. So the answer to the barrier
    /// follows all earlier changes on this host, even if the watcher has not reported the latest of
    /// them.
    fn apply_item(&self, payload: &ItemPayload) -> Result<(), ErrorReport> {
        if matches!(payload, ItemPayload::Barrier { .. }) {
            self.mirror.update(|mirror| Ok(((), mirror.compare_all()?)), |()| None)?;
        }
        let apply = || self.mirror.update(|mirror| Ok(((), mirror.apply(payload)?)), |()| None);
        if !matches!(payload, ItemPayload::HomeOffered { .. } | ItemPayload::HomeMoved { .. }) {
            return apply();
        }
        failpoint::hit("home.step");
        let applied = apply();
        failpoint::hit("home.step-done");
        applied
    }

    /// Writes the position in place, without waiting for the disk. The position survives a kill of
    /// the process. After a power loss, the file may have an older position.
    fn note_position(&mut self, position: ReceivedPosition) -> Result<(), ErrorReport> {
        if self.position != position {
            self.directory.overwrite(POSITION, &position_bytes(position))?;
            self.position = position;
        }
        Ok(())
    }

    /// Writes the position so that a power loss does not take it back.
    fn store_position(&mut self, position: ReceivedPosition) -> Result<(), ErrorReport> {
        self.directory.replace(POSITION, &position_bytes(position))?;
        self.position = position;
        Ok(())
    }

    fn apply_all(&mut self, items: &[Arc<LinkItem>], position: ReceivedPosition) -> Result<(), ErrorReport> {
        let position_of = |number| ReceivedPosition { number, ..position };
        let applied = self.applied;
        for item in items.iter().filter(|item| item.number > applied) {
            // The position of the previous item is written first, so that a crash repeats at most
            // the item that is stored now. If the last call of this function failed, that position
            // may not be in the file yet.
            self.note_position(position_of(self.applied))?;
            self.apply_item(&item.payload)?;
            self.applied = item.number;
        }
        self.store_position(position)
    }
}

/// The content of the file. Its length is constant, so that it can be overwritten in place.
fn position_bytes(position: ReceivedPosition) -> Vec<u8> {
    let mut json = serde_json::to_vec(&position).expect("a position is two numbers");
    json.resize(POSITION_BYTES, b' ');
    json
}

impl ItemReceiver for MirrorReceiver {
    fn position(&self) -> ReceivedPosition {
        self.position
    }

    fn apply(&mut self, items: &[Arc<LinkItem>], position: ReceivedPosition) -> Result<(), String> {
        self.apply_all(items, position).map_err(|error| error.message)
    }
}
