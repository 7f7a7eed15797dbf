//! Cancels the setup commands of worktrees. The event loop requests this. The commands run on the
//! threads of worktree jobs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use worktree::end_processes_with_variable;

/// The variable with the path of the worktree. By it all processes of a command are found.
pub(super) const WORKTREE_VARIABLE: &str = "TEAMD_WORKTREE";

/// The worktrees whose setup command must not run. A clone shares the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelledSetups {
    paths: Arc<Mutex<BTreeSet<PathBuf>>>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl CancelledSetups {
    /// Allows a setup in this worktree again, if an earlier one was cancelled. Called before the
    /// job that creates the worktree begins.
    pub(super) fn forget(&self, worktree: &Path) {
        lock(&self.paths).remove(worktree);
    }

    /// Starts a thread that ends the setup command in this worktree. A command that has not started
    /// yet does not start.
    pub(super) fn cancel(&self, worktree: PathBuf) {
        lock(&self.paths).insert(worktree.clone());
        let end = move || {
            if let Err(error) = end_processes_with_variable(WORKTREE_VARIABLE, &worktree) {
                tracing::warn!("cannot cancel the setup of {}: {error}", worktree.display());
            }
        };
        match std::thread::Builder::new().name("cancel-setup".into()).spawn(end) {
            Ok(thread) => {
                let mut threads = lock(&self.threads);
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => tracing::warn!("cannot start a thread that cancels a setup: {error}"),
        }
    }

    /// Waits until the cancelled commands have ended. Called before the daemon exits.
    pub(crate) fn wait(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }

    /// Calls `start`, which starts the setup command, unless the setup in this worktree is
    /// cancelled. In that case returns `None`.
    ///
    /// The lock prevents a cancellation while `start` runs. So [`CancelledSetups::cancel`] finds
    /// the processes of every command that was started.
    pub(super) fn start_unless_cancelled<T>(&self, worktree: &Path, start: impl FnOnce() -> T) -> Option<T> {
        let paths = lock(&self.paths);
        (!paths.contains(worktree)).then(start)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
