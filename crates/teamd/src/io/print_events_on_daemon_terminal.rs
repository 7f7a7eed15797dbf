//! Writes one line per event, and the notices for people, to the daemon's terminal.
//!
//! A separate thread writes to the terminal, because a write can block for hours, for example if a
//! user has pressed Ctrl-S. If the terminal takes no more lines, further lines are dropped; the log
//! file has all of them.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{SyncSender, sync_channel};

/// How many lines wait for a stopped terminal. Further lines are dropped.
const MAX_PENDING_LINES: usize = 256;

/// The queue of lines for the terminal.
#[derive(Debug)]
pub(crate) struct DaemonTerminal(SyncSender<String>);

impl DaemonTerminal {
    /// Starts the thread that writes to the terminal. The thread runs until the process exits.
    pub(crate) fn start() -> DaemonTerminal {
        let (lines, queue) = sync_channel::<String>(MAX_PENDING_LINES);
        let write = move || {
            queue.iter().for_each(|text| {
                failpoint::hit("terminal.line");
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
            });
        };
        // If the thread cannot be started, the daemon runs without output on its terminal.
        std::thread::Builder::new().name("terminal".into()).spawn(write).map(drop).unwrap_or_default();
        DaemonTerminal(lines)
    }

    /// Queues a line. If the queue is full, the line is dropped.
    pub(crate) fn print_line(&self, line: String) {
        self.0.try_send(format!("{line}\n")).ok();
    }

    /// Rings the terminal's bell and shows `text` as a desktop notification, with the escape
    /// sequence OSC 9, or OSC 777 for rxvt. Does nothing if standard output is not a terminal.
    ///
    /// `text` must have no control characters.
    pub(crate) fn show_notice(&self, text: &str) {
        if std::io::stdout().is_terminal() {
            self.0.try_send(notice_escape_sequence(text, TerminalKind::from_env())).ok();
        }
    }
}

/// Returns the bell and the escape sequence that shows `text` as a desktop notification.
///
/// tmux passes an escape sequence to its own terminal only if the sequence is wrapped in a
/// passthrough sequence and the option `allow-passthrough` is on.
fn notice_escape_sequence(text: &str, terminal: TerminalKind) -> String {
    match terminal {
        TerminalKind::Tmux => format!("\x07\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\"),
        TerminalKind::Rxvt => format!("\x07\x1b]777;notify;teamd;{text}\x07"),
        TerminalKind::Other => format!("\x07\x1b]9;{text}\x07"),
    }
}

/// A terminal, by how it shows notices.
enum TerminalKind {
    Tmux,
    Rxvt,
    Other,
}

impl TerminalKind {
    fn from_env() -> TerminalKind {
        if std::env::var_os("TMUX").is_some_and(|tmux| !tmux.is_empty()) {
            TerminalKind::Tmux
        } else if std::env::var("TERM").is_ok_and(|terminal| terminal.starts_with("rxvt")) {
            TerminalKind::Rxvt
        } else {
            TerminalKind::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{TerminalKind, notice_escape_sequence};

    #[test]
    fn a_notice_is_a_bell_and_the_terminals_own_escape_sequence() {
        assert_eq!(notice_escape_sequence("x", TerminalKind::Other), "\u{7}\u{1b}]9;x\u{7}");
        assert_eq!(notice_escape_sequence("x", TerminalKind::Rxvt), "\u{7}\u{1b}]777;notify;teamd;x\u{7}");
        assert_eq!(
            notice_escape_sequence("x", TerminalKind::Tmux),
            "\u{7}\u{1b}Ptmux;\u{1b}\u{1b}]9;x\u{7}\u{1b}\\"
        );
    }
}
