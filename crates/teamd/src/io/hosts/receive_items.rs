//! Stores the items that the other host has sent.

use crate::io::hosts::shared_mirror::SharedMirror;
use link::{ItemReceiver, ReceivedPosition};
use mirror::are_messages_to_one_inbox;
use protocol::annex_link::{ItemPayload, LinkItem};
use protocol::error_kind_and_report::ErrorReport;
use std::sync::Arc;
use store::StateDir;
use tokio::sync::oneshot;

/// The file with the position of the last stored item.
const POSITION: &str = "received.json";
/// Length of its content, with spaces at the end. Two numbers of 20 digits fit.
const POSITION_BYTES: usize = 80;

/// Stores the received items with the mirrors, in groups: one item, or successive messages to one
/// inbox. Before it stores a group, the receiver writes the number of the item before the group to
/// a file. So after a crash of the daemon, the other host sends at most one stored group again, and
/// the mirrors recognize it. Several groups would bring back an older state of the team.
#[derive(Debug)]
pub(super) struct MirrorReceiver {
    mirror: SharedMirror,
    directory: StateDir,
    position: ReceivedPosition,
    /// The number of the last item that the mirrors have stored. The file may still have the number
    /// of the item before its group.
    applied: u64,
    /// Dropped with the receiver, after its last write.
    _ended: oneshot::Sender<()>,
}

impl MirrorReceiver {
    /// Opens the receiver with its file in `directory`. Also returns a channel, which closes when
    /// the receiver is dropped.
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
    /// Stores one item, or messages to one inbox. A barrier is an item by which the other host asks
    /// whether all earlier items are handled. Before this host answers, it compares all files, so
    /// that the other host gets all earlier changes of this host before the answer.
    fn apply_group(&self, group: &[&LinkItem]) -> Result<(), ErrorReport> {
        let payloads: Vec<&ItemPayload> = group.iter().map(|item| &item.payload).collect();
        if matches!(payloads[..], [ItemPayload::Barrier { .. }]) {
            self.mirror.update(|mirror| Ok(((), mirror.compare_all()?)), |()| None)?;
        }
        let apply = || self.mirror.update(|mirror| Ok(((), mirror.apply_group(&payloads)?)), |()| None);
        if !matches!(payloads[..], [ItemPayload::HomeOffered { .. } | ItemPayload::HomeMoved { .. }]) {
            return apply();
        }
        failpoint::hit("home.step");
        let applied = apply();
        failpoint::hit("home.step-done");
        applied
    }

    /// Overwrites the position in the file, without waiting for the disk. The new position survives
    /// a crash of the daemon, but a power loss can bring the old one back.
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
        let new: Vec<&LinkItem> =
            items.iter().map(Arc::as_ref).filter(|item| item.number > applied).collect();
        for group in new.chunk_by(|first, next| are_messages_to_one_inbox(&first.payload, &next.payload)) {
            // Before items are stored, the file gets the number of the item before them. So after a
            // crash, at most one group of stored items is sent again.
            self.note_position(position_of(self.applied))?;
            self.apply_group(group)?;
            self.applied = group.last().map_or(self.applied, |item| item.number);
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
