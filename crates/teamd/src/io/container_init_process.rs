//! The daemon as the first process of a container, which has the process id 1.
//!
//! The kernel makes process 1 the parent of every orphan, and an orphan that has exited stays a
//! zombie until its parent reaps it. The daemon waits only for its own children. So as process 1 it
//! starts itself once more as a child. Process 1 then only reaps processes, passes signals on to
//! the daemon, and ends with the daemon's exit code.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::process::{Command, ExitCode};

/// Runs the daemon as a child process, if this is process 1. Returns the exit code of the daemon.
/// `None` if this is not process 1.
///
/// # Errors
///
/// If the daemon cannot be started as a child, or if signals cannot be caught or passed on.
pub(crate) fn run_daemon_as_child() -> io::Result<Option<ExitCode>> {
    if std::process::id() != 1 {
        return Ok(None);
    }
    // The signals are caught before the child exists, so that no exit is missed.
    let mut signals = Signals::new([SIGCHLD, SIGHUP, SIGINT, SIGTERM])?;
    let daemon = Command::new(std::env::current_exe()?).args(std::env::args_os().skip(1)).spawn()?;
    let daemon = i32::try_from(daemon.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    for signal in signals.forever() {
        if let Some(code) = reap_exited(daemon) {
            return Ok(Some(code));
        }
        if let Some(signal) = Signal::from_named_raw(signal).filter(|signal| *signal != Signal::CHILD) {
            kill_process(daemon, signal)?;
        }
    }
    Ok(None)
}

/// Reaps all processes that have exited. Returns the exit code of the daemon if it is among them.
fn reap_exited(daemon: Pid) -> Option<ExitCode> {
    let mut code = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == daemon {
            let number = status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal));
            code = Some(ExitCode::from(number.and_then(|number| u8::try_from(number).ok()).unwrap_or(1)));
        }
    }
    code
}
