//! Takes over the terminal, draws the screen on it, and restores the terminal however the program
//! ends.

use crate::clipboard_sequence::clipboard_sequence;
use crate::detail_page_layout;
use crate::draw::draw;
use crate::ui_events_and_effects::MouseMode;
use crate::ui_state::UiState;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::style::Style;
use signal_hook::consts::SIGSTOP;
use std::io::{Stdout, stdout};

/// The terminal, as long as this program draws on it.
pub(crate) struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    drawn_state: DrawnState,
    mouse: MouseMode,
}

/// Whether the terminal still shows what was drawn last.
#[derive(PartialEq, Eq)]
enum DrawnState {
    Current,
    Stale,
}

impl TerminalScreen {
    /// Takes the terminal: raw mode and the alternate screen.
    pub(crate) fn open() -> Result<TerminalScreen, ErrorReport> {
        install_panic_hook();
        enter_screen(MouseMode::On).map_err(|error| terminal_error("take", &error))?;
        let terminal =
            Terminal::new(CrosstermBackend::new(stdout())).map_err(|error| terminal_error("take", &error));
        Ok(TerminalScreen {
            terminal: terminal.inspect_err(|_| leave_screen())?,
            drawn_state: DrawnState::Current,
            mouse: MouseMode::On,
        })
    }

    /// The size in columns and lines.
    pub(crate) fn size(&self) -> (u16, u16) {
        // Some terminals do not report a size; 80 by 24 is the usual one.
        self.terminal.size().map_or((80, 24), |size| (size.width, size.height))
    }

    /// Draws the state. Only cells that changed are written to the terminal.
    pub(crate) fn draw(&mut self, state: &mut UiState) -> Result<(), ErrorReport> {
        self.draw_with(|area, buffer| {
            state.size = (area.width, area.height);
            draw(state, buffer);
        })?;
        detail_page_layout::mark_drawn(state);
        Ok(())
    }

    /// Draws lines from the top. Their texts must be printable already.
    pub(crate) fn draw_lines(&mut self, lines: &[String]) -> Result<(), ErrorReport> {
        self.draw_with(|area, buffer| {
            for (y, line) in (0..area.height).zip(lines) {
                buffer.set_stringn(0, y, line, area.width.into(), Style::new());
            }
        })
    }

    fn draw_with(&mut self, render: impl FnOnce(Rect, &mut Buffer)) -> Result<(), ErrorReport> {
        if std::mem::replace(&mut self.drawn_state, DrawnState::Current) == DrawnState::Stale {
            // `Terminal::clear` is not used, because it asks the terminal for the position of the
            // cursor, and the answer would be read as typed keys.
            let (width, height) = self.size();
            let all = Rect::new(0, 0, width, height);
            self.terminal.resize(all).map_err(|error| terminal_error("clear", &error))?;
        }
        let drawn = self.terminal.draw(|frame| render(frame.area(), frame.buffer_mut()));
        drawn.map(|_| ()).map_err(|error| terminal_error("draw on", &error))
    }

    /// Whether the whole screen must be drawn again.
    pub(crate) fn is_stale(&self) -> bool {
        self.drawn_state == DrawnState::Stale
    }

    /// Gives the terminal back and stops the process until SIGCONT.
    pub(crate) fn suspend(&mut self) -> Result<(), ErrorReport> {
        leave_screen();
        // After SIGCONT, the thread that handles signals sends `UiEvent::Continued`, and the event
        // loop takes the terminal over again.
        signal_hook::low_level::raise(SIGSTOP).map_err(|error| terminal_error("leave", &error))
    }

    /// Takes the mouse, or gives it back to the terminal.
    pub(crate) fn set_mouse(&mut self, mouse: MouseMode) -> Result<(), ErrorReport> {
        self.mouse = mouse;
        print_sequence(mouse_sequence(mouse))
    }

    /// Copies a text to the clipboard of the terminal, if the terminal permits it.
    pub(crate) fn copy(&mut self, text: &str) -> Result<(), ErrorReport> {
        print_sequence(&clipboard_sequence(text))
    }

    /// Takes the terminal again after another program has used it.
    pub(crate) fn redraw_all(&mut self) -> Result<(), ErrorReport> {
        self.drawn_state = DrawnState::Stale;
        // Another program may have changed the mode since, so raw mode is set anew.
        disable_raw_mode().map_err(|error| terminal_error("take", &error))?;
        enter_screen(self.mouse).map_err(|error| terminal_error("take", &error))
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        leave_screen();
    }
}

fn enter_screen(mouse: MouseMode) -> std::io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide, Print(mouse_sequence(mouse)))
}

/// The escape sequence that turns the terminal's reports of clicks and of the wheel on or off.
/// Movements of the mouse are not reported, because each of them would be an event.
fn mouse_sequence(mouse: MouseMode) -> &'static str {
    match mouse {
        MouseMode::On => "\u{1b}[?1000h\u{1b}[?1006h",
        MouseMode::Off => "\u{1b}[?1006l\u{1b}[?1000l",
    }
}

/// Gives the terminal back. Errors are ignored: the terminal may be closed.
fn leave_screen() {
    let mouse_off = Print(mouse_sequence(MouseMode::Off));
    execute!(stdout(), mouse_off, DisableBracketedPaste, LeaveAlternateScreen, Show).ok();
    disable_raw_mode().ok();
}

fn print_sequence(sequence: &str) -> Result<(), ErrorReport> {
    execute!(stdout(), Print(sequence)).map_err(|error| terminal_error("write to", &error))
}

fn terminal_error(verb: &str, error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot {verb} the terminal: {error}"))
}

/// Makes a panic of any thread leave the alternate screen, print the panic's message and end the
/// program. Without this, a panic of the thread that reads snapshots would leave old data on the
/// screen as if it were current.
fn install_panic_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave_screen();
        before(panic);
        std::process::exit(ErrorKind::Internal.exit_code().into());
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The test starts its own executable as another process, with the environment variable
    /// `PANICS`. A thread of that process panics.
    #[test]
    fn panic_in_any_thread_exits_with_its_message() {
        if std::env::var_os("PANICS").is_some() {
            install_panic_hook();
            std::thread::spawn(|| panic!("a test panic")).join().ok();
            return;
        }
        let name = "terminal_screen::tests::panic_in_any_thread_exits_with_its_message";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", name, "--nocapture"]).env("PANICS", "1").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{output:?}");
        assert!(stderr.contains("a test panic"), "{stderr}");
    }
}
