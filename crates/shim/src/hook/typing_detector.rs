//! Detects whether a person types into a terminal, without taking the input from the program. The
//! operating system notifies the detector of each read of the program from its terminal. Not every
//! system can do this.
//!
//! A program also reads input that no person types: the terminal's replies to queries, and reports
//! of focus changes. So only two reads within 1.5 s count as typing. Reads also do not count for a
//! moment after the terminal's size has changed, because some programs, such as codex, then query
//! the terminal. The same holds for a moment after the detector has started.

use nix::fcntl::OFlag;
use platform::TerminalReads;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// For this time, the program's reads from its terminal do not count as typing. The time begins
/// when the detector starts, and again when the terminal's size changes.
const SETTLE_TIME: Duration = Duration::from_millis(300);
/// Two reads within this time mean that a person types.
const KEYSTROKE_WINDOW: Duration = Duration::from_millis(1500);

/// Detects typing in one terminal.
#[derive(Debug)]
pub(super) struct TypingDetector {
    terminal_reads: TerminalReads,
    device: PathBuf,
    size: Option<(u16, u16)>,
    ignore_until: Instant,
    last_read: Option<Instant>,
}

impl TypingDetector {
    /// Starts to watch the terminal. `None` if it cannot be watched; typing is not detected then.
    pub(super) fn watch(device: &Path) -> Option<TypingDetector> {
        let terminal_reads = platform::system().watch_terminal_reads(device)?;
        let (device, size) = (device.to_owned(), terminal_size(device));
        Some(TypingDetector {
            terminal_reads,
            device,
            size,
            ignore_until: Instant::now() + SETTLE_TIME,
            last_read: None,
        })
    }

    /// The descriptor for poll(2).
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.terminal_reads.as_fd()
    }

    /// Takes the reads since the last call. Returns true if a person types.
    pub(super) fn detect_typing(&mut self, now: Instant) -> bool {
        let reads = self.terminal_reads.take_count();
        if reads > 0 {
            self.note_size(terminal_size(&self.device), now);
        }
        reads > 0 && self.is_typing(reads, now)
    }

    /// Stores the size of the terminal. If the size has changed, the program's reads from the
    /// terminal do not count as typing for [`SETTLE_TIME`].
    fn note_size(&mut self, size: Option<(u16, u16)>, now: Instant) {
        if self.size != size {
            (self.size, self.ignore_until, self.last_read) = (size, now + SETTLE_TIME, None);
        }
    }

    fn is_typing(&mut self, reads: usize, now: Instant) -> bool {
        if now < self.ignore_until {
            return false;
        }
        let previous_read = self.last_read.replace(now);
        reads > 1
            || previous_read
                .is_some_and(|previous_read| now.duration_since(previous_read) <= KEYSTROKE_WINDOW)
    }
}

/// Columns and lines of a terminal. Opening the terminal does not make it the controlling terminal.
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
    fn repeated_reads_are_typing_and_a_single_read_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut detector = TypingDetector::watch(dir.path()).unwrap();
        let at = |ms: u64| detector.ignore_until + Duration::from_millis(ms);
        let (during_start, first, second, third) =
            (detector.ignore_until - Duration::from_millis(1), at(10), at(5_000), at(5_400));
        assert!(!detector.is_typing(5, during_start), "the terminal answers a query of the program");
        assert!(
            !detector.is_typing(1, first) && !detector.is_typing(1, second),
            "a change of focus is one read"
        );
        assert!(detector.is_typing(1, third));
        assert!(detector.is_typing(2, one_minute_after(third)));
    }

    #[test]
    fn reads_after_a_size_change_are_not_typing() {
        let dir = tempfile::tempdir().unwrap();
        let mut detector = TypingDetector::watch(dir.path()).unwrap();
        let at = |detector: &TypingDetector, ms: u64| detector.ignore_until + Duration::from_millis(ms);
        let resize_time = at(&detector, 10);
        assert!(!detector.is_typing(1, resize_time));
        detector.note_size(Some((98, 40)), resize_time + Duration::from_millis(400));
        assert!(!detector.is_typing(5, resize_time + Duration::from_millis(400)));
        let typing_time = at(&detector, 1);
        detector.note_size(Some((98, 40)), typing_time);
        assert!(detector.is_typing(2, typing_time));
    }

    fn one_minute_after(time: Instant) -> Instant {
        time + Duration::from_secs(60)
    }

    #[test]
    fn missing_terminal_is_not_watched() {
        assert!(TypingDetector::watch(Path::new("/nowhere")).is_none());
    }
}
