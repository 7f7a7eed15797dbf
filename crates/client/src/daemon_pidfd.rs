//! Opens the daemon's process and waits for its exit.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};

/// Opens a pidfd of the process `pid`. `None` if there is no such process.
pub fn open_pidfd(pid: u32) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
}

/// Waits for the process to exit, for at most 5 s.
pub fn wait_for_exit(process: &OwnedFd) {
    poll(&mut [PollFd::new(process.as_fd(), PollFlags::POLLIN)], PollTimeout::from(5_000_u16)).ok();
}
