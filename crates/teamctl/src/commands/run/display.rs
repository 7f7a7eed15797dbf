//! Shows the progress of a run: not at all, as a line per event, or as a table that is redrawn.

use super::progress_table::{Palette, TerminalSize, render};
use crate::command_rewriter::{self, rewrite_commands};
use crate::context::CommandContext;
use crate::output;
use client::suggested_commands::SuggestedCommands;
use protocol::error::ErrorReport;
use runner::{RunObserver, RunProgress};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};

/// How many event lines the table shows.
const RECENT_LINES: usize = 8;

/// Shows a run to the user.
pub(super) struct RunDisplay<'a> {
    context: &'a CommandContext,
    mode: DisplayMode,
}

enum DisplayMode {
    /// `--json` or `--quiet`.
    Silent,
    /// Standard output is no terminal.
    Lines,
    Table(LiveTable),
}

impl RunDisplay<'_> {
    pub(super) fn new(context: &CommandContext) -> RunDisplay<'_> {
        let mode = match context.args.json || context.args.quiet {
            true => DisplayMode::Silent,
            false if std::io::stdout().is_terminal() => {
                DisplayMode::Table(LiveTable::new(command_rewriter::suggested_commands(context)))
            }
            false => DisplayMode::Lines,
        };
        RunDisplay { context, mode }
    }
}

impl RunObserver for RunDisplay<'_> {
    fn show_event(&self, line: String) {
        match &self.mode {
            DisplayMode::Silent => {}
            DisplayMode::Lines => output::print_line(&line),
            DisplayMode::Table(table) => table.push_event(line),
        }
    }

    fn show_progress(&self, progress: &RunProgress) {
        if let DisplayMode::Table(table) = &self.mode {
            table.draw(progress);
        }
    }

    fn is_live(&self) -> bool {
        matches!(self.mode, DisplayMode::Table(_))
    }

    fn show_warning(&self, warning: &str) {
        let warning = rewrite_commands(self.context, warning);
        self.print_or_keep(Box::new(move || output::print_warning(&warning)));
    }

    fn show_error(&self, error: &ErrorReport) {
        let error = output::with_suggested_commands(self.context, error);
        self.print_or_keep(Box::new(move || {
            output::print_error_to_stderr(&error);
        }));
    }

    fn show_daemon_failure(&self, text: &str) {
        let text = rewrite_commands(self.context, text);
        self.print_or_keep(Box::new(move || output::print_daemon_failure(&text)));
    }
}

impl RunDisplay<'_> {
    /// Calls `print`, which prints a text. While the table is drawn, the call is deferred until the
    /// table has left the terminal. The table uses the terminal's alternate screen, which has no
    /// history, so a text that is printed there would be lost.
    fn print_or_keep(&self, print: Box<dyn FnOnce()>) {
        match &self.mode {
            DisplayMode::Table(table) if table.is_drawn() => table.state.borrow_mut().deferred.push(print),
            _ => print(),
        }
    }
}

/// A table on the terminal's alternate screen. The first draw switches to the alternate screen, and
/// dropping the table switches back. The alternate screen has no history, so a resize of the
/// terminal leaves no old parts of the table behind.
struct LiveTable {
    state: RefCell<TableState>,
    suggested_commands: SuggestedCommands,
}

#[derive(Default)]
struct TableState {
    is_drawn: bool,
    recent: VecDeque<String>,
    /// What to print when the table has left the terminal.
    deferred: Vec<Box<dyn FnOnce()>>,
}

impl LiveTable {
    fn new(suggested_commands: SuggestedCommands) -> LiveTable {
        LiveTable { state: RefCell::default(), suggested_commands }
    }

    fn is_drawn(&self) -> bool {
        self.state.borrow().is_drawn
    }

    fn push_event(&self, line: String) {
        let recent = &mut self.state.borrow_mut().recent;
        recent.push_back(line);
        if recent.len() > RECENT_LINES {
            recent.pop_front();
        }
    }

    fn draw(&self, progress: &RunProgress) {
        self.enter();
        let state = self.state.borrow();
        let recent: Vec<&str> = state.recent.iter().map(String::as_str).collect();
        let (width, height) = output::terminal_size().unwrap_or((80, 24));
        let palette = if output::supports_color() { Palette::Colored } else { Palette::Plain };
        let size = TerminalSize { width, height };
        let lines = render(progress, &recent, size, palette, &self.suggested_commands);
        let lines: Vec<String> = lines.into_iter().map(|line| format!("{line}\x1b[K")).collect();
        write(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")));
    }

    fn enter(&self) {
        let mut state = self.state.borrow_mut();
        if !state.is_drawn {
            state.is_drawn = true;
            // Alternate screen, no cursor, no wrapping: the terminal clips lines that are too wide.
            write("\x1b[?1049h\x1b[?25l\x1b[?7l");
        }
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.is_drawn {
            write("\x1b[?7h\x1b[?25h\x1b[?1049l");
        }
        state.deferred.drain(..).for_each(|print| print());
    }
}

/// Writes to standard output. Errors are ignored, because the next frame replaces this one.
fn write(text: &str) {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).ok();
}
