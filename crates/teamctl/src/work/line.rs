//! The worker's wake line: one byte says "look", how many there are says nothing.

use crate::exec::inherited_line;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The agent's end of it.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
}

impl Line {
    /// The one that join left open for us.
    pub(super) fn inherited() -> Option<Line> {
        let stream = UnixStream::from(inherited_line()?);
        stream.set_nonblocking(true).ok()?;
        Some(Line { stream })
    }

    /// Forgets all wakes so far.
    pub(super) fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.stream).read(&mut bytes), Ok(read) if read > 0) {}
    }

    /// Sleeps until a wake. False when join has gone, and with it whoever could wake us.
    pub(super) fn wait(&self) -> bool {
        loop {
            let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            if poll(&mut fds, PollTimeout::NONE).is_ok() {
                let flags = fds[0].revents().unwrap_or(PollFlags::empty());
                return !flags.contains(PollFlags::POLLHUP);
            }
        }
    }

    /// For poll(2) beside other things.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
