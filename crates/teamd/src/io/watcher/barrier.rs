//! Marks among what the watcher is told: a file of ours that comes and goes. The kernel tells of everything that is watched
//! in the order in which it happened; so once a mark is told of, all that was written before it has been told.

use crate::core::event::CoreEvent;
use notify::EventKind;
use std::fs::{DirBuilder, File, remove_file};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The directory in which they are made.
#[derive(Debug, Clone)]
pub(crate) struct Barriers(PathBuf);

impl Barriers {
    /// In the daemon's state directory, where nobody else writes or watches.
    pub(crate) fn new(state: &Path) -> Barriers {
        Barriers(state.join("marks"))
    }

    /// What is to be watched.
    pub(super) fn ensure_directory(&self) -> io::Result<&Path> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        Ok(&self.0)
    }

    /// Its end is what is told of: one that a daemon has left which was killed is made and removed like any other.
    pub(super) fn create(&self, mark: u64) -> io::Result<()> {
        let path = self.0.join(mark.to_string());
        File::create(&path)?;
        failpoint::hit("watch.mark");
        remove_file(path)?;
        failpoint::hit("watch.marked");
        Ok(())
    }

    pub(super) fn event_for(&self, kind: EventKind, path: &Path) -> Option<CoreEvent> {
        let mark = path.strip_prefix(&self.0).ok()?.to_str()?.parse().ok()?;
        matches!(kind, EventKind::Remove(_)).then_some(CoreEvent::BarrierReached { mark })
    }
}
