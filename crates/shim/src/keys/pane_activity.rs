//! When a program writes to its pane: seen by the growth of its log, which is what tmux pipes its output into.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use protocol::error::ErrorReport;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Watches one log. Its directory, since a log that is full is followed by another of its name; what others of the team
/// write wakes too, and costs a look.
#[derive(Debug)]
pub(super) struct PaneActivity(Inotify);

impl PaneActivity {
    pub(super) fn watch(log: &Path) -> Result<PaneActivity, ErrorReport> {
        let directory = log.parent().unwrap_or(log);
        let watched = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).and_then(|inotify| {
            inotify.add_watch(directory, AddWatchFlags::IN_MODIFY)?;
            Ok(inotify)
        });
        watched.map(PaneActivity).map_err(|errno| ErrorReport::from_io("watch", directory, &errno))
    }

    /// Forgets what was written before; true if something was.
    pub(super) fn drain(&self) -> bool {
        let mut any = false;
        loop {
            match self.0.read_events() {
                Ok(events) => any |= !events.is_empty(),
                Err(Errno::EINTR) => {}
                Err(_) => return any,
            }
        }
    }

    /// Sleeps until something is written; false if nothing was for so long.
    pub(super) fn wait_for_output(&self, wait: Duration) -> bool {
        let timeout = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
        let mut asked = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut asked, timeout).is_ok_and(|ready| ready > 0)
    }

    /// Sleeps until nothing was written for `still`, but not for longer than `at_most`.
    pub(super) fn wait_until_quiet(&self, still: Duration, at_most: Duration) {
        let until = Instant::now() + at_most;
        loop {
            self.drain();
            if !self.wait_for_output(still) || Instant::now() >= until {
                return;
            }
        }
    }
}
