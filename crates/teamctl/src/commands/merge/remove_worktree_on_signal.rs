//! Removes the worktree of a merge when SIGINT, SIGTERM or SIGHUP ends the command. What was merged
//! before stays merged.

use super::lock_and_note::MergeLock;
use crate::output;
use client::catch_terminating_signals::call_on_signals;
use protocol::error_kind_and_report::ErrorReport;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::{Arc, Mutex, PoisonError};
use worktree::GitEnvironment;

/// The exit code of a merge that one of these signals has ended: that of a shell after SIGINT.
const INTERRUPTED: i32 = 130;

/// The lock of a merge, in a mutex. When a signal arrives, the thread that waits for signals takes
/// the mutex and keeps it until the process exits. So the merge cannot go on while its worktree is
/// removed.
pub(super) struct SharedMergeLock(Arc<Mutex<MergeLock>>);

impl SharedMergeLock {
    /// Catches the signals from now on.
    pub(super) fn new_with_signal_handler(
        lock: MergeLock,
        environment: GitEnvironment,
    ) -> Result<SharedMergeLock, ErrorReport> {
        let shared = SharedMergeLock(Arc::new(Mutex::new(lock)));
        let thread_lock = SharedMergeLock(shared.0.clone());
        call_on_signals(&[SIGINT, SIGTERM, SIGHUP], move || {
            thread_lock.with(|lock| {
                if let Err(error) = lock.remove_worktree(&environment) {
                    output::print_error_to_stderr(&error);
                }
                std::process::exit(INTERRUPTED);
            });
        })?;
        Ok(shared)
    }

    /// Calls `action` with the lock. Does not return if a signal ends this process.
    pub(super) fn with<T>(&self, action: impl FnOnce(&mut MergeLock) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns at once, or never if a signal ends this process.
    pub(super) fn block_if_process_is_ending(&self) {
        self.with(|_| ());
    }
}
