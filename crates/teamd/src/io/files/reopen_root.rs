//! Opens the root again if its directories are removed or moved while the daemon runs.
//!
//! After a move, the directories that the daemon has open are no longer at the root's path, and
//! other programs do not use them. Before its next job, a files thread opens the directories that
//! are at the root's path now, and locks them. The lock ensures that at most one daemon uses these
//! directories.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::file_jobs::FileJob;
use crate::io::files::files_thread::FilesThread;
use crate::io::files::root_and_saves_shared_by_threads::{CurrentRoot, lock};
use crate::io::single_instance_locks;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::sync::Arc;
use store::Root;

impl FilesThread {
    /// If the root's directories were moved or replaced, opens the root again and sends the result
    /// as an event. If another files thread has already done this, uses the root that it has
    /// opened.
    ///
    /// If a directory is missing, the root is opened again only before a `job` that creates a team,
    /// because opening the root creates the directory.
    pub(super) fn check_root(&mut self, job: &FileJob) {
        let shared = Arc::clone(&self.shared);
        let mut current = lock(&shared.root);
        self.use_root(&current);
        if current.is_lost || current.root.is_current() {
            return;
        }
        // A user may have moved the directories, and may be about to put others in their place. So
        // the daemon does not create them.
        if !current.root.has_directories() && !matches!(job, FileJob::CreateTeam(_)) {
            self.events.send(CoreEvent::WatchFailed).ok();
            return;
        }
        let result = current.reopen();
        self.use_root(&current);
        self.events.send(CoreEvent::RootReopened(result)).ok();
    }

    fn use_root(&mut self, current: &CurrentRoot) {
        if self.root_generation != current.generation {
            std::mem::take(&mut self.teams).keys().for_each(|team| self.inboxes.forget_team(team));
            (self.root, self.root_generation) = (current.root.clone(), current.generation);
        }
    }
}

impl CurrentRoot {
    /// Opens the root again.
    ///
    /// # Errors
    ///
    /// The errors of [`reopen_and_lock`]. The root is then marked as lost, and the daemon exits.
    fn reopen(&mut self) -> Result<(), ErrorReport> {
        let opened = reopen_and_lock(&self.root);
        self.is_lost = opened.is_err();
        self.root = opened?;
        self.generation += 1;
        Ok(())
    }
}

/// Opens and locks the directories that are at the root's path now.
///
/// # Errors
///
/// If the root's path now resolves to another path than before, for example through a symbolic link
/// that was changed. If another daemon holds the lock.
fn reopen_and_lock(before: &Root) -> Result<Root, ErrorReport> {
    let root = before.reopen()?;
    let (old, new) = (before.path(), root.path());
    if old != new {
        // The root's path now resolves to another path. Clients derive the path of the daemon's
        // socket from it, so they would not find this daemon any more.
        let message = format!("cannot supervise {} any more: it leads to {}", old.display(), new.display());
        return Err(
            ErrorReport::new(ErrorKind::MissingPath, message).with_help("start a teamd there: teamctl up")
        );
    }
    // The new handle, `root`, needs the lock of the directory `teams`. If only `tasks` was
    // replaced, the old handle, `before`, still holds this lock, so it is released first.
    before.unlock()?;
    single_instance_locks::lock_root(&root)?;
    failpoint::hit("files.root");
    Ok(root)
}
