//! Barrier files. The daemon creates and removes one to find out when all earlier file events have
//! arrived.
//!
//! The kernel reports changes of watched directories in the order in which they happened. So when
//! the file event for a barrier file arrives, the events of all earlier changes have arrived.

use crate::core::core_event::CoreEvent;
use notify::EventKind;
use protocol::state_file_names::BARRIERS_DIR;
use std::fs::{DirBuilder, File, remove_file};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory of the barrier files.
#[derive(Debug, Clone)]
pub(crate) struct Barriers(PathBuf);

impl Barriers {
    /// Barrier files are in the daemon's state directory `state`, where only the daemon writes.
    pub(crate) fn new(state: &Path) -> Barriers {
        Barriers(state.join(BARRIERS_DIR))
    }

    /// Creates the directory, and returns it to be watched.
    pub(super) fn ensure_directory(&self) -> io::Result<&Path> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        Ok(&self.0)
    }

    /// Creates the barrier file with the number `barrier` and removes it. The watcher reports the
    /// removal.
    ///
    /// If a killed daemon has left a file with this number, that file is truncated and removed.
    pub(super) fn create(&self, barrier: u64) -> io::Result<()> {
        let path = self.0.join(barrier.to_string());
        File::create(&path)?;
        failpoint::hit("watch.barrier");
        remove_file(path)?;
        failpoint::hit("watch.barrier-done");
        Ok(())
    }

    /// The core event for a file event. `None` if it is not the removal of a barrier file.
    pub(super) fn event_for(&self, kind: EventKind, path: &Path) -> Option<CoreEvent> {
        let barrier = path.strip_prefix(&self.0).ok()?.to_str()?.parse().ok()?;
        matches!(kind, EventKind::Remove(_)).then_some(CoreEvent::BarrierReached { barrier })
    }
}
