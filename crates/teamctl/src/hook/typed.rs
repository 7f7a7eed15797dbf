//! Whether a person types: seen without taking the input from the program, by the program's own reading of its
//! terminal.
//!
//! A program also reads what its terminal answers it, and that a window has got the focus. So what comes right after
//! the wait began does not count, and one read alone neither: a person's keys come in a row.

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

/// So long after the wait began a program may still ask its terminal.
const SETTLED: Duration = Duration::from_millis(300);
/// Two reads within this are a person.
const IN_A_ROW: Duration = Duration::from_millis(1500);

/// Watches a terminal.
#[derive(Debug)]
pub(super) struct Typed {
    inotify: Inotify,
    from: Instant,
    last: Option<Instant>,
}

impl Typed {
    /// None where that terminal can't be watched: then its program's own keys are left.
    pub(super) fn at(device: &Path) -> Option<Typed> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
        inotify.add_watch(device, AddWatchFlags::IN_ACCESS).ok()?;
        Some(Typed { inotify, from: Instant::now() + SETTLED, last: None })
    }

    /// For poll(2).
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Takes what has been seen; true where a person types.
    pub(super) fn is_person(&mut self, now: Instant) -> bool {
        let mut reads = 0;
        loop {
            match self.inotify.read_events() {
                Ok(events) => reads += events.len(),
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        reads > 0 && self.counts(reads, now)
    }

    fn counts(&mut self, reads: usize, now: Instant) -> bool {
        if now < self.from {
            return false;
        }
        let before = self.last.replace(now);
        reads > 1 || before.is_some_and(|before| now.duration_since(before) <= IN_A_ROW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reads_in_a_row_are_a_person_and_an_answer_of_the_terminal_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut typed = Typed::at(dir.path()).unwrap();
        let at = |ms: u64| typed.from + Duration::from_millis(ms);
        let (early, one, late, next) = (typed.from - Duration::from_millis(1), at(10), at(5_000), at(5_400));
        assert!(!typed.counts(5, early), "the program asks its terminal");
        assert!(!typed.counts(1, one) && !typed.counts(1, late), "the focus comes and goes");
        assert!(typed.counts(1, next));
        assert!(typed.counts(2, at_after(next)));
    }

    fn at_after(next: Instant) -> Instant {
        next + Duration::from_secs(60)
    }

    #[test]
    fn a_terminal_that_is_not_there_is_not_watched() {
        assert!(Typed::at(Path::new("/nowhere")).is_none());
    }
}
