//! The daemon's own pane: a line per event, for whoever looks. A terminal may be gone, or stopped with Ctrl-S
//! for hours, so a thread of its own writes there; what it can't take, the log file has.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{SyncSender, sync_channel};

/// So many lines wait for a terminal that has been stopped; later ones are dropped.
const MAX_PENDING_LINES: usize = 256;

/// Where lines for people go.
#[derive(Debug)]
pub(crate) struct DaemonTerminal(SyncSender<String>);

impl DaemonTerminal {
    /// Starts the thread, which ends with the process.
    pub(crate) fn start() -> DaemonTerminal {
        let (lines, queue) = sync_channel::<String>(MAX_PENDING_LINES);
        let write = move || {
            queue.iter().for_each(|text| {
                failpoint::hit("screen.line");
                let mut out = std::io::stdout();
                out.write_all(text.as_bytes()).and_then(|()| out.flush()).unwrap_or_default();
            });
        };
        // Without a thread nothing is shown, and all goes on.
        std::thread::Builder::new().name("screen".into()).spawn(write).map(drop).unwrap_or_default();
        DaemonTerminal(lines)
    }

    /// Shows a line, sooner or later or not at all.
    pub(crate) fn print_line(&self, line: String) {
        self.0.try_send(format!("{line}\n")).ok();
    }

    /// A bell, and a notification (OSC 9, for rxvt 777) for terminals that show such. Where there is no terminal, nothing.
    ///
    /// `text` holds nothing that steers a terminal.
    pub(crate) fn show_notice(&self, text: &str) {
        if std::io::stdout().is_terminal() {
            let inside_tmux = std::env::var_os("TMUX").is_some_and(|tmux| !tmux.is_empty());
            let terminal = std::env::var("TERM").unwrap_or_default();
            self.0.try_send(notice_escape_sequence(text, inside_tmux, &terminal)).ok();
        }
    }
}

/// tmux hands a sequence on to the terminal around it only if it is wrapped, and if `allow-passthrough` says so.
fn notice_escape_sequence(text: &str, inside_tmux: bool, terminal: &str) -> String {
    match inside_tmux {
        true => format!("\x07\x1bPtmux;\x1b\x1b]9;{text}\x07\x1b\\"),
        false if terminal.starts_with("rxvt") => format!("\x07\x1b]777;notify;teamd;{text}\x07"),
        false => format!("\x07\x1b]9;{text}\x07"),
    }
}

#[cfg(test)]
mod tests {
    use super::notice_escape_sequence;

    #[test]
    fn a_bell_and_a_notification_are_rung() {
        assert_eq!(notice_escape_sequence("x", false, "xterm-256color"), "\u{7}\u{1b}]9;x\u{7}");
        assert_eq!(notice_escape_sequence("x", false, "rxvt-unicode"), "\u{7}\u{1b}]777;notify;teamd;x\u{7}");
        assert_eq!(
            notice_escape_sequence("x", true, "tmux-256color"),
            "\u{7}\u{1b}Ptmux;\u{1b}\u{1b}]9;x\u{7}\u{1b}\\"
        );
    }
}
