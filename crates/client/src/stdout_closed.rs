//! Whether the reader of our standard output has closed its end.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::AsFd;

/// Whether the reader has gone, without waiting.
pub fn is_output_closed() -> bool {
    poll_output_closed(PollTimeout::ZERO)
}

/// Waits up to `wait` for the reader to close; false if that did not happen or cannot be determined.
pub(crate) fn poll_output_closed(wait: PollTimeout) -> bool {
    let stdout = std::io::stdout();
    // Errors and hang-ups are reported though nothing is asked for.
    let mut asked = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    loop {
        match poll(&mut asked, wait) {
            Ok(ready) => return ready > 0,
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
