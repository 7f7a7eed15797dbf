//! Detects that the reader of standard output has closed it.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;

/// Whether the reader has closed standard output. Does not wait.
pub fn is_output_closed() -> bool {
    poll_output_closed(PollTimeout::ZERO)
}

/// Waits up to `timeout` for the reader of standard output to close the pipe. Returns false if the
/// reader does not close the pipe within this time, or if this cannot be determined.
pub(crate) fn poll_output_closed(timeout: PollTimeout) -> bool {
    let stdout = std::io::stdout();
    // poll(2) always reports errors and hang-ups, so no events are requested.
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    loop {
        match poll(&mut fds, timeout) {
            Ok(ready_count) => return ready_count > 0,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
