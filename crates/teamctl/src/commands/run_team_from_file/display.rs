//! Shows the progress of a run: not at all, as a line per event, or as a table that is redrawn.

use super::progress_table::{Palette, TerminalSize, render};
use crate::add_options_to_suggested_commands::{self, rewrite_commands};
use crate::command_context::CommandContext;
use crate::output;
use client::suggested_commands::SuggestedCommands;
use protocol::error_kind_and_report::ErrorReport;
use runner::{RunObserver, RunProgress};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{IsTerminal, Write, stdout};

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
            false if stdout().is_terminal() => {
                let suggested_commands = add_options_to_suggested_commands::suggested_commands(context);
                DisplayMode::Table(LiveTable::new(Box::new(stdout()), suggested_commands))
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
    /// Calls `print`, which prints a text. While the table is on the terminal, the call is deferred
    /// until the table is removed. Otherwise the text would be lost together with the table, which
    /// is on the terminal's alternate screen.
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

struct TableState {
    terminal: Box<dyn Write>,
    is_drawn: bool,
    recent: VecDeque<String>,
    /// What to print when the table has left the terminal.
    deferred: Vec<Box<dyn FnOnce()>>,
}

impl LiveTable {
    fn new(terminal: Box<dyn Write>, suggested_commands: SuggestedCommands) -> LiveTable {
        let state = TableState { terminal, is_drawn: false, recent: VecDeque::new(), deferred: Vec::new() };
        LiveTable { state: RefCell::new(state), suggested_commands }
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
        let mut state = self.state.borrow_mut();
        state.enter();
        let recent: Vec<&str> = state.recent.iter().map(String::as_str).collect();
        let (width, height) = output::terminal_size().unwrap_or((80, 24));
        let palette = if output::supports_color() { Palette::Colored } else { Palette::Plain };
        let size = TerminalSize { width, height };
        let lines = render(progress, &recent, size, palette, &self.suggested_commands);
        let lines: Vec<String> = lines.into_iter().map(|line| format!("{line}\x1b[K")).collect();
        state.write(&format!("\x1b[H{}\x1b[J", lines.join("\r\n")));
    }
}

impl TableState {
    fn enter(&mut self) {
        if !self.is_drawn {
            self.is_drawn = true;
            // Alternate screen, no cursor, no wrapping: the terminal clips lines that are too wide.
            self.write("\x1b[?1049h\x1b[?25l\x1b[?7l");
        }
    }

    /// Writes to the terminal. Errors are ignored, because the next frame replaces this one.
    fn write(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).and_then(|()| self.terminal.flush()).ok();
    }
}

impl Drop for LiveTable {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if state.is_drawn {
            state.write("\x1b[?7h\x1b[?25h\x1b[?1049l");
        }
        state.deferred.drain(..).for_each(|print| print());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_context::GlobalArgs;
    use std::io;
    use std::rc::Rc;

    const LEAVE_ALTERNATE_SCREEN: &str = "\x1b[?1049l";

    /// A terminal that records its output.
    #[derive(Clone, Default)]
    struct FakeTerminal(Rc<RefCell<Vec<u8>>>);

    impl FakeTerminal {
        /// Takes the output since the last call.
        fn take_text(&self) -> String {
            String::from_utf8(self.0.take()).unwrap()
        }
    }

    impl Write for FakeTerminal {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn show_warning(display: &RunDisplay, terminal: &FakeTerminal, text: &'static str) {
        let mut terminal = terminal.clone();
        display.print_or_keep(Box::new(move || terminal.write_all(text.as_bytes()).unwrap()));
    }

    #[test]
    fn warnings_are_deferred_after_the_first_draw_and_printed_on_drop() {
        let args = GlobalArgs { root: None, socket: None, team: None, host: None, json: false, quiet: false };
        let context = CommandContext::new(args);
        let terminal = FakeTerminal::default();
        let table = LiveTable::new(Box::new(terminal.clone()), SuggestedCommands::default());
        let display = RunDisplay { context: &context, mode: DisplayMode::Table(table) };
        show_warning(&display, &terminal, "early;");
        assert_eq!(terminal.take_text(), "early;", "a warning before the first draw is printed at once");
        let DisplayMode::Table(table) = &display.mode else { unreachable!() };
        table.draw(&RunProgress::default());
        show_warning(&display, &terminal, "first;");
        table.draw(&RunProgress::default());
        show_warning(&display, &terminal, "second;");
        let drawn_text = terminal.take_text();
        assert!(
            !drawn_text.contains("first") && !drawn_text.contains(LEAVE_ALTERNATE_SCREEN),
            "{drawn_text:?}"
        );
        drop(display);
        let output = terminal.take_text();
        assert!(output.ends_with(&format!("{LEAVE_ALTERNATE_SCREEN}first;second;")), "{output:?}");
    }
}
