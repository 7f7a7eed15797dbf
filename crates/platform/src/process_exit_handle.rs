//! A handle of a process, with which its exit can be awaited.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::process::Signal;

/// A process whose exit can be waited for. The descriptor is readable after the exit.
///
/// A caller opens the handle first, and then checks the start time or the environment of the
/// process. If the check succeeds, the handle refers to the right process, even if its pid is
/// reused later.
pub struct ExitHandle {
    pub(crate) fd: OwnedFd,
    pub(crate) send_signal: SendSignal,
}

/// Sends a signal to the process of the handle with this descriptor.
pub(crate) type SendSignal = Box<dyn Fn(&OwnedFd, Signal) -> io::Result<()> + Send + Sync>;

impl ExitHandle {
    /// Whether the process exits within `timeout`.
    pub fn exits_within(&self, timeout: Duration) -> io::Result<bool> {
        let end = Instant::now() + timeout;
        loop {
            let remaining = Timespec::try_from(end.saturating_duration_since(Instant::now())).ok();
            match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], remaining.as_ref()) {
                Err(Errno::INTR) => {}
                result => return Ok(result? > 0),
            }
        }
    }

    /// Sends a signal to the process.
    ///
    /// # Errors
    ///
    /// `ESRCH` if the process has exited.
    pub fn send_signal(&self, signal: Signal) -> io::Result<()> {
        (self.send_signal)(&self.fd, signal)
    }
}

impl Debug for ExitHandle {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExitHandle").field("fd", &self.fd).finish_non_exhaustive()
    }
}

impl AsFd for ExitHandle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

pub(crate) fn to_pid(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}
