//! Whether a person types: seen without taking the input from the program, by the program's own reading of its
//! terminal.
//!
//! A program also reads what its terminal answers it, and that a window has got the focus. So what comes right after
//! the wait began does not count, and one read alone neither: a person's keys come in a row. Nor does what comes after
//! the window has changed its size, as it does with every pane that comes or goes beside it: codex then asks anew.

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// So long after the wait began, or after a new size, a program may still ask its terminal.
const SETTLE_TIME: Duration = Duration::from_millis(300);
/// Two reads within this are a person.
const KEYSTROKE_WINDOW: Duration = Duration::from_millis(1500);

/// Watches a terminal.
#[derive(Debug)]
pub(super) struct TypingDetector {
    inotify: Inotify,
    device: PathBuf,
    size: Option<(u16, u16)>,
    ignore_until: Instant,
    last: Option<Instant>,
}

impl TypingDetector {
    /// None where that terminal can't be watched: then its program's own keys are left.
    pub(super) fn watch(device: &Path) -> Option<TypingDetector> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC).ok()?;
        inotify.add_watch(device, AddWatchFlags::IN_ACCESS).ok()?;
        let (device, size) = (device.to_owned(), terminal_size(device));
        Some(TypingDetector { inotify, device, size, ignore_until: Instant::now() + SETTLE_TIME, last: None })
    }

    /// For poll(2).
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }

    /// Takes what has been seen; true where a person types.
    pub(super) fn detect_typing(&mut self, now: Instant) -> bool {
        let mut reads = 0;
        loop {
            match self.inotify.read_events() {
                Ok(events) => reads += events.len(),
                Err(Errno::EINTR) => {}
                Err(_) => break,
            }
        }
        if reads > 0 {
            self.note_size(terminal_size(&self.device), now);
        }
        reads > 0 && self.is_typing(reads, now)
    }

    /// Of another size than before: it begins anew.
    fn note_size(&mut self, size: Option<(u16, u16)>, now: Instant) {
        if self.size != size {
            (self.size, self.ignore_until, self.last) = (size, now + SETTLE_TIME, None);
        }
    }

    fn is_typing(&mut self, reads: usize, now: Instant) -> bool {
        if now < self.ignore_until {
            return false;
        }
        let before = self.last.replace(now);
        reads > 1 || before.is_some_and(|before| now.duration_since(before) <= KEYSTROKE_WINDOW)
    }
}

/// Columns and lines. Opened for the question alone, and never as our own terminal.
fn terminal_size(device: &Path) -> Option<(u16, u16)> {
    let flags = (OFlag::O_NOCTTY | OFlag::O_NONBLOCK).bits();
    let terminal = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(device).ok()?;
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some((size.ws_col, size.ws_row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reads_in_a_row_are_a_person_and_an_answer_of_the_terminal_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let mut typed = TypingDetector::watch(dir.path()).unwrap();
        let at = |ms: u64| typed.ignore_until + Duration::from_millis(ms);
        let (early, one, late, next) =
            (typed.ignore_until - Duration::from_millis(1), at(10), at(5_000), at(5_400));
        assert!(!typed.is_typing(5, early), "the program asks its terminal");
        assert!(!typed.is_typing(1, one) && !typed.is_typing(1, late), "the focus comes and goes");
        assert!(typed.is_typing(1, next));
        assert!(typed.is_typing(2, at_after(next)));
    }

    #[test]
    fn what_is_read_after_the_window_has_changed_is_no_person() {
        let dir = tempfile::tempdir().unwrap();
        let mut typed = TypingDetector::watch(dir.path()).unwrap();
        let at = |typed: &TypingDetector, ms: u64| typed.ignore_until + Duration::from_millis(ms);
        let resized = at(&typed, 10);
        assert!(!typed.is_typing(1, resized));
        typed.note_size(Some((98, 40)), resized + Duration::from_millis(400));
        assert!(!typed.is_typing(5, resized + Duration::from_millis(400)));
        let typing = at(&typed, 1);
        typed.note_size(Some((98, 40)), typing);
        assert!(typed.is_typing(2, typing));
    }

    fn at_after(next: Instant) -> Instant {
        next + Duration::from_secs(60)
    }

    #[test]
    fn a_terminal_that_is_not_there_is_not_watched() {
        assert!(TypingDetector::watch(Path::new("/nowhere")).is_none());
    }
}
