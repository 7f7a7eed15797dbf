//! Signals and checks by pid, on systems whose handles of processes take none.

use crate::ProcessEntry;
use crate::process_exit_handle::to_pid;
use rustix::io::Errno;
use rustix::process::{Signal, kill_process, test_kill_process};
use std::io;

/// Sends a signal to the process `expected`, by its pid. `current` is the process that has this pid
/// now. The signal is sent only if `current` and `expected` are the same process. But between this
/// comparison and the signal, the process may exit and its pid may be reused.
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

/// Checks the result of a search for `pid` in the process table, and returns the result. If it is
/// `None`, the kernel is asked too whether there is such a process.
///
/// # Errors
///
/// If the process exists although the table has no entry for it.
pub(crate) fn confirm_absence(pid: u32, entry: Option<ProcessEntry>) -> io::Result<Option<ProcessEntry>> {
    let is_absent = || to_pid(pid).is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
    if entry.is_some() || is_absent() {
        return Ok(entry);
    }
    Err(io::Error::other(format!("the process table does not show the process {pid}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_entry_of_a_running_process_is_an_error() {
        assert!(confirm_absence(std::process::id(), None).is_err());
        assert_eq!(confirm_absence(0, None).unwrap(), None);
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert_eq!(confirm_absence(child.id(), None).unwrap(), None);
    }
}
