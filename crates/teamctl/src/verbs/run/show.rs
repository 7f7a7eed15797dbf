//! What is seen of a run while it goes on: a line for each event, or on a terminal a table redrawn in place.
//!
//! The table stands on the terminal's other screen, which has no history: a resize can't smear it, and at the
//! end what stood there before is back.

use super::frame::{Size, View, frame};
use crate::here::Here;
use crate::output;
use crate::verbs::typed;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use view::suggested_commands::SuggestedCommands;

/// The last lines are kept for the table's foot.
const RECENT: usize = 8;

/// Where a run shows itself.
pub(super) enum Show {
    /// Nowhere: a script reads the result, or nobody wants to see it.
    Nothing,
    /// A line for each event.
    Lines,
    /// A table.
    Live(Live),
}

impl Show {
    pub(super) fn of(here: &Here) -> Show {
        match here.global.json || here.global.quiet {
            true => Show::Nothing,
            false if std::io::stdout().is_terminal() => Show::Live(Live::begin(typed::at(here))),
            false => Show::Lines,
        }
    }

    /// Something happened; safe to show.
    pub(super) fn line(&mut self, line: String) {
        match self {
            Show::Nothing => {}
            Show::Lines => output::line(&line),
            Show::Live(live) => live.add(line),
        }
    }

    /// How it stands now.
    pub(super) fn view(&mut self, view: &View) {
        if let Show::Live(live) = self {
            live.draw(view);
        }
    }

    /// Whether a clock is shown that has to go on.
    pub(super) fn ticks(&self) -> bool {
        matches!(self, Show::Live(_))
    }
}

/// A table on the terminal's other screen; the first one comes back when this goes.
pub(super) struct Live {
    recent: VecDeque<String>,
    typed: SuggestedCommands,
}

impl Live {
    fn begin(typed: SuggestedCommands) -> Live {
        // The other screen, no cursor, no wrapping: the terminal itself clips what is too wide.
        write("\x1b[?1049h\x1b[?25l\x1b[?7l");
        Live { recent: VecDeque::new(), typed }
    }

    fn add(&mut self, line: String) {
        self.recent.push_back(line);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
    }

    fn draw(&self, view: &View) {
        let (width, height) = size();
        let recent: Vec<&str> = self.recent.iter().map(String::as_str).collect();
        let lines = frame(view, &recent, Size { width, height }, output::colored(), &self.typed);
        let lines: Vec<String> = lines.into_iter().map(|line| format!("{line}\x1b[K")).collect();
        write(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        write("\x1b[?7h\x1b[?25h\x1b[?1049l");
    }
}

/// Columns and lines of the terminal.
fn size() -> (usize, usize) {
    output::terminal_size().unwrap_or((80, 24))
}

/// A picture that does not get through is followed by the next one.
fn write(text: &str) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}
