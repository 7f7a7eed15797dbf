//! What crosses exec(2): the agent's place in the foreground of its terminal, and its wake line.
//!
//! All that is `unsafe` in this program. Everything else here is plain.

#![allow(unsafe_code)]

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the child become the foreground process group of its terminal, if it has one, and keep `line`.
/// Ctrl-C in the pane then reaches the agent and not us. std has emptied the signal mask by then; what tmux
/// or whoever started it ignored, the agent does not.
pub(crate) fn run_in_foreground(command: &mut Command, line: &OwnedFd) {
    let line = line.as_raw_fd();
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe calls are made: fcntl, sigprocmask, tcsetpgrp,
    // getpid, sigaction to the default. `line` is open in the child, because the parent holds it across the spawn.
    unsafe {
        command.pre_exec(move || {
            clear_cloexec(line)?;
            take_foreground();
            reset_signals()
        });
    }
}

/// Gives the child a session of its own: no terminal of ours is its controlling one, and a signal to its
/// process group reaches it and its children alone. It keeps `line`, if there is one to keep.
pub(crate) fn run_in_new_session(command: &mut Command, line: Option<&OwnedFd>) {
    let line = line.map(AsRawFd::as_raw_fd);
    // SAFETY: between fork and exec only async-signal-safe calls are made: fcntl, setsid, sigaction to the
    // default. `line` is open in the child, because the parent holds it across the spawn.
    unsafe {
        command.pre_exec(move || {
            line.map_or(Ok(()), clear_cloexec)?;
            nix::unistd::setsid()?;
            reset_signals()
        });
    }
}

/// Closes what this process was started with above standard error, which nobody meant to hand on: it would live on in
/// every agent. Only as the first thing of all, while nothing here owns a descriptor.
pub(crate) fn close_inherited() {
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers = open.filter_map(|entry| entry.file_name().to_str()?.parse::<RawFd>().ok());
    let inherited: Vec<RawFd> = numbers.filter(|fd| *fd > 2).collect();
    for fd in inherited {
        // The directory's own is among them, and closed by now.
        nix::unistd::close(fd).ok();
    }
}

/// The descriptor stays open across exec.
fn clear_cloexec(line: RawFd) -> std::io::Result<()> {
    // SAFETY: it is open: the parent holds it across the spawn.
    let line = unsafe { BorrowedFd::borrow_raw(line) };
    fcntl(line, FcntlArg::F_SETFD(FdFlag::empty()))?;
    Ok(())
}

fn reset_signals() -> std::io::Result<()> {
    for of in Signal::iterator().filter(|of| !matches!(of, Signal::SIGKILL | Signal::SIGSTOP)) {
        // SAFETY: the default is no handler of ours.
        unsafe { signal(of, SigHandler::SigDfl)? };
    }
    Ok(())
}

/// A group that is not yet in the foreground is stopped by SIGTTOU when it asks for it, unless that is blocked.
fn take_foreground() {
    let mut ttou = SigSet::empty();
    ttou.add(Signal::SIGTTOU);
    let mut before = SigSet::empty();
    // Without a terminal there is nothing to take, and that is fine.
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&ttou), Some(&mut before)).ok();
    nix::unistd::tcsetpgrp(std::io::stdin(), nix::unistd::getpid()).ok();
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&before), None).ok();
}
