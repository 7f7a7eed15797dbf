//! Opens the root again after its directories were removed or moved while the daemon runs.
//!
//! After a move, the daemon's open directories are the old ones, which no other program uses. The
//! files thread therefore opens the directories at the root's path before its next job and locks
//! them. The lock ensures that at most one daemon uses the directories.

use crate::core::event::CoreEvent;
use crate::core::jobs::file_job::FileJob;
use crate::io::files::thread::FilesThread;
use crate::io::single_instance;
use protocol::error::{ErrorKind, ErrorReport};

impl FilesThread {
    /// Opens the root again if its directories were replaced. Reports the result as an event.
    ///
    /// `job` is the next job. Missing directories are created only for a new team.
    pub(super) fn check_root(&mut self, job: &FileJob) {
        if self.is_root_lost || self.root.is_current() {
            return;
        }
        // A user who moved a directory may be about to replace it with another one or a link. The
        // daemon must not create a directory in its place.
        if !self.root.has_directories() && !matches!(job, FileJob::CreateTeam { .. }) {
            self.events.send(CoreEvent::WatchFailed).ok();
            return;
        }
        let opened = self.reopen_root();
        self.is_root_lost = opened.is_err();
        self.events.send(CoreEvent::RootReopened(opened)).ok();
    }

    /// Opens and locks the directories at the root's path.
    ///
    /// # Errors
    ///
    /// If the path leads to another directory now, or another daemon holds the lock.
    fn reopen_root(&mut self) -> Result<(), ErrorReport> {
        let root = self.root.reopen()?;
        let (old, new) = (self.root.path(), root.path());
        if old != new {
            // A client that uses this path now expects the socket of another daemon.
            let message =
                format!("cannot supervise {} any more: it leads to {}", old.display(), new.display());
            return Err(ErrorReport::new(ErrorKind::MissingPath, message)
                .with_help("start a teamd there: teamctl up"));
        }
        // If only `tasks` was removed, the new root has the locked directory and could not lock it.
        self.root.unlock()?;
        single_instance::lock_root(&root)?;
        failpoint::hit("files.root");
        std::mem::take(&mut self.teams).keys().for_each(|team| self.inboxes.forget_team(team));
        self.root = root;
        Ok(())
    }
}
