//! The daemon's own pane: a line per event, for whoever looks. A terminal may be gone, or stopped with Ctrl-S
//! for hours, so a thread of its own writes there; what it can't take, the log file has.

use std::io::Write;
use std::sync::mpsc::{SyncSender, sync_channel};

/// So many lines wait for a terminal that has been stopped; later ones are dropped.
const LINES: usize = 256;

/// Where lines for people go.
#[derive(Debug)]
pub(crate) struct Screen(SyncSender<String>);

impl Screen {
    /// Starts the thread, which ends with the process.
    pub(crate) fn start() -> Screen {
        let (lines, queue) = sync_channel::<String>(LINES);
        let write =
            move || queue.iter().for_each(|line| writeln!(std::io::stdout(), "{line}").unwrap_or_default());
        // Without a thread nothing is shown, and all goes on.
        std::thread::Builder::new().name("screen".into()).spawn(write).map(drop).unwrap_or_default();
        Screen(lines)
    }

    /// Shows a line, sooner or later or not at all.
    pub(crate) fn show(&self, line: String) {
        self.0.try_send(line).ok();
    }
}
