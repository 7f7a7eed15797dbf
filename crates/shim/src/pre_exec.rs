//! Prepares a child process between fork and exec. The child becomes the foreground process group
//! of its terminal, or it gets a process session of its own. In both cases it can inherit the wake
//! socket of its agent.
//!
//! This module has all unsafe code of the shim.

#![allow(unsafe_code)]

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Makes the child the foreground process group of its terminal, if it has a terminal. The child
/// keeps `wake_socket` open.
///
/// The child is in the foreground so that Ctrl-C in the pane reaches the agent and not the shim.
/// All signals get their default action in the child, even those that tmux ignored. No signal is
/// blocked, because the standard library has already emptied the child's signal mask.
pub(crate) fn run_in_foreground(command: &mut Command, wake_socket: &OwnedFd) {
    let wake_socket = wake_socket.as_raw_fd();
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe functions are called: fcntl,
    // sigprocmask, tcsetpgrp, getpid and sigaction. `wake_socket` is open in the child, because the
    // parent keeps it open until the child has started.
    unsafe {
        command.pre_exec(move || {
            clear_cloexec(wake_socket)?;
            take_foreground();
            reset_signals()
        });
    }
}

/// Starts the child in a new session. The child has no controlling terminal there, and a signal to
/// its process group reaches only the child and its children. If `wake_socket` is given, the child
/// keeps it open.
pub(crate) fn run_in_new_session(command: &mut Command, wake_socket: Option<&OwnedFd>) {
    let wake_socket = wake_socket.map(AsRawFd::as_raw_fd);
    // SAFETY: between fork and exec only async-signal-safe functions are called: fcntl, setsid and
    // sigaction. `wake_socket` is open in the child, because the parent keeps it open until the
    // child has started.
    unsafe {
        command.pre_exec(move || {
            wake_socket.map_or(Ok(()), clear_cloexec)?;
            nix::unistd::setsid()?;
            reset_signals()
        });
    }
}

/// Keeps a descriptor open across exec.
fn clear_cloexec(fd: RawFd) -> std::io::Result<()> {
    // SAFETY: the descriptor is open, because the parent holds it across the spawn.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    fcntl(fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

fn reset_signals() -> std::io::Result<()> {
    for default in Signal::iterator().filter(|signal| !matches!(signal, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: the default action runs no handler of this program.
        unsafe { signal(default, SigHandler::SigDfl)? };
    }
    Ok(())
}

/// Makes this process the foreground of its terminal. SIGTTOU is blocked during the call: the
/// kernel sends this signal to a background process that calls tcsetpgrp, and its default action
/// stops the process.
fn take_foreground() {
    let mut blocked_signals = SigSet::empty();
    blocked_signals.add(Signal::SIGTTOU);
    let mut previous_mask = SigSet::empty();
    // Without a terminal the calls fail, and nothing needs to be done.
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&blocked_signals), Some(&mut previous_mask)).ok();
    nix::unistd::tcsetpgrp(std::io::stdin(), nix::unistd::getpid()).ok();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&previous_mask), None).ok();
}
