//! The worker's wake line: one byte says "look", how many there are says nothing.

use crate::pre_exec::inherited_wake_socket;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::Instant;

/// The agent's end of it.
#[derive(Debug)]
pub(super) struct Line {
    stream: UnixStream,
}

/// What ended the wait.
#[derive(Debug)]
pub(super) enum Heard {
    /// A wake; all wakes so far are forgotten.
    Wake,
    /// The command has.
    Ended,
    /// join has gone, and with it whoever could wake us.
    Closed,
    Deadline,
}

impl Line {
    /// The one that join left open for us.
    pub(super) fn inherited() -> Option<Line> {
        let stream = UnixStream::from(inherited_wake_socket()?);
        stream.set_nonblocking(true).ok()?;
        Some(Line { stream })
    }

    /// Sleeps until a wake, the end of `command`, or `until`.
    pub(super) fn hear(&self, command: Option<&Child>, until: Option<Instant>) -> Heard {
        // Opened for each wait: our own child, not yet waited for, keeps its number.
        let end = command.and_then(pidfd);
        loop {
            let mut fds = vec![PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
            fds.extend(end.iter().map(|end| PollFd::new(end.as_fd(), PollFlags::POLLIN)));
            let timeout = until.map_or(PollTimeout::NONE, |until| {
                let left = until.saturating_duration_since(Instant::now()).as_millis() + 1;
                PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
            });
            match poll(&mut fds, timeout) {
                Ok(0) => return Heard::Deadline,
                Err(_) => continue,
                Ok(_) => {}
            }
            let flags = |at: usize| fds.get(at).and_then(PollFd::revents).unwrap_or(PollFlags::empty());
            if flags(1).contains(PollFlags::POLLIN) {
                return Heard::Ended;
            }
            if flags(0).contains(PollFlags::POLLHUP) {
                return Heard::Closed;
            }
            self.drain();
            return Heard::Wake;
        }
    }

    fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.stream).read(&mut bytes), Ok(read) if read > 0) {}
    }
}

fn pidfd(child: &Child) -> Option<OwnedFd> {
    pidfd_open(Pid::from_raw(i32::try_from(child.id()).ok()?)?, PidfdFlags::empty()).ok()
}
