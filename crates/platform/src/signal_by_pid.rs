//! Signals on systems whose handles of processes take none.

use crate::ProcessEntry;
use crate::process_exit_handle::to_pid;
use rustix::io::Errno;
use rustix::process::{Signal, kill_process};
use std::io;

/// Sends a signal to the process `expected`, by its pid. Sends it only if `current`, the process
/// that has this pid now, is the same process. The pid may be reused between this comparison and
/// the signal.
///
/// # Errors
///
/// `ESRCH` if the process has exited.
pub(crate) fn kill_if_same(
    expected: &ProcessEntry,
    current: Option<ProcessEntry>,
    signal: Signal,
) -> io::Result<()> {
    let is_same = current.is_some_and(|current| current.is_same(expected));
    let pid = to_pid(expected.pid).filter(|_| is_same).ok_or(Errno::SRCH)?;
    Ok(kill_process(pid, signal)?)
}
