//! What is seen of a run while it goes on: a line for each event, or on a terminal a table redrawn in place.
//!
//! The table stands on the terminal's other screen, which has no history: a resize can't smear it, and at the
//! end what stood there before is back.

use super::progress_table::{RunProgress, TerminalSize, render};
use crate::command_rewriter;
use crate::context::CommandContext;
use crate::output;
use client::suggested_commands::SuggestedCommands;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};

/// The last lines are kept for the table's foot.
const RECENT_LINES: usize = 8;

/// Where a run shows itself.
pub(super) enum RunDisplay {
    /// Nowhere: a script reads the result, or nobody wants to see it.
    Silent,
    /// A line for each event.
    Lines,
    /// A table.
    Table(LiveTable),
}

impl RunDisplay {
    pub(super) fn for_output(here: &CommandContext) -> RunDisplay {
        match here.args.json || here.args.quiet {
            true => RunDisplay::Silent,
            false if std::io::stdout().is_terminal() => {
                RunDisplay::Table(LiveTable::enter(command_rewriter::suggested_commands(here)))
            }
            false => RunDisplay::Lines,
        }
    }

    /// Something happened; safe to show.
    pub(super) fn show_event(&mut self, line: String) {
        match self {
            RunDisplay::Silent => {}
            RunDisplay::Lines => output::print_line(&line),
            RunDisplay::Table(live) => live.push_event(line),
        }
    }

    /// How it stands now.
    pub(super) fn show_progress(&mut self, view: &RunProgress) {
        if let RunDisplay::Table(live) = self {
            live.draw(view);
        }
    }

    /// Whether a clock is shown that has to go on.
    pub(super) fn needs_clock(&self) -> bool {
        matches!(self, RunDisplay::Table(_))
    }
}

/// A table on the terminal's other screen; the first one comes back when this goes.
pub(super) struct LiveTable {
    recent: VecDeque<String>,
    typed: SuggestedCommands,
}

impl LiveTable {
    fn enter(typed: SuggestedCommands) -> LiveTable {
        // The other screen, no cursor, no wrapping: the terminal itself clips what is too wide.
        write("\x1b[?1049h\x1b[?25l\x1b[?7l");
        LiveTable { recent: VecDeque::new(), typed }
    }

    fn push_event(&mut self, line: String) {
        self.recent.push_back(line);
        if self.recent.len() > RECENT_LINES {
            self.recent.pop_front();
        }
    }

    fn draw(&self, view: &RunProgress) {
        let (width, height) = terminal_size();
        let recent: Vec<&str> = self.recent.iter().map(String::as_str).collect();
        let lines =
            render(view, &recent, TerminalSize { width, height }, output::supports_color(), &self.typed);
        let lines: Vec<String> = lines.into_iter().map(|line| format!("{line}\x1b[K")).collect();
        write(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")));
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        write("\x1b[?7h\x1b[?25h\x1b[?1049l");
    }
}

/// Columns and lines of the terminal.
fn terminal_size() -> (usize, usize) {
    output::terminal_size().unwrap_or((80, 24))
}

/// A picture that does not get through is followed by the next one.
fn write(text: &str) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}
