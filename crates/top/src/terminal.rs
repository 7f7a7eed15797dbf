//! The terminal: taken, drawn on, and given back as it was, whatever ends us.

use crate::draw::draw;
use crate::event::UiEvent;
use crate::state::UiState;
use protocol::error::{ErrorKind, ErrorReport};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use ratatui::style::Style;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::io::{Stdout, stdout};
use std::sync::mpsc::Sender;

/// The terminal in our hands.
pub(crate) struct TerminalScreen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    fresh: DrawnState,
}

/// Whether the terminal still shows what we drew.
#[derive(PartialEq, Eq)]
enum DrawnState {
    Current,
    Stale,
}

impl TerminalScreen {
    /// Takes the terminal.
    pub(crate) fn open() -> Result<TerminalScreen, ErrorReport> {
        install_panic_hook();
        enter_screen().map_err(|error| terminal_error("take", &error))?;
        let terminal =
            Terminal::new(CrosstermBackend::new(stdout())).map_err(|error| terminal_error("take", &error));
        Ok(TerminalScreen { terminal: terminal.inspect_err(|_| leave_screen())?, fresh: DrawnState::Current })
    }

    /// Columns and lines.
    pub(crate) fn size(&self) -> (u16, u16) {
        // A terminal that does not tell has the usual ones.
        self.terminal.size().map_or((80, 24), |size| (size.width, size.height))
    }

    /// Draws what has changed.
    pub(crate) fn draw(&mut self, state: &mut UiState) -> Result<(), ErrorReport> {
        self.draw_with(|area, buffer| {
            state.size = (area.width, area.height);
            draw(state, buffer);
        })?;
        state.mark_drawn();
        Ok(())
    }

    /// Draws lines, their texts harmless, from the top.
    pub(crate) fn draw_lines(&mut self, lines: &[String]) -> Result<(), ErrorReport> {
        self.draw_with(|area, buffer| {
            for (y, line) in (0..area.height).zip(lines) {
                buffer.set_stringn(0, y, line, area.width.into(), Style::new());
            }
        })
    }

    fn draw_with(&mut self, by: impl FnOnce(Rect, &mut Buffer)) -> Result<(), ErrorReport> {
        if std::mem::replace(&mut self.fresh, DrawnState::Current) == DrawnState::Stale {
            // Not its `clear`, which asks the terminal for its cursor: that answer would come among the keys.
            let (width, height) = self.size();
            let all = Rect::new(0, 0, width, height);
            self.terminal.resize(all).map_err(|error| terminal_error("clear", &error))?;
        }
        let drawn = self.terminal.draw(|frame| by(frame.area(), frame.buffer_mut()));
        drawn.map(|_| ()).map_err(|error| terminal_error("draw on", &error))
    }

    /// Whether all of it must be drawn anew.
    pub(crate) fn is_stale(&self) -> bool {
        self.fresh == DrawnState::Stale
    }

    /// Gives the terminal back, and stops until somebody lets us go on.
    pub(crate) fn suspend(&mut self) -> Result<(), ErrorReport> {
        leave_screen();
        // Cannot fail for ourselves. What comes then is SIGCONT, and so the renewal.
        signal_hook::low_level::raise(SIGSTOP).map_err(|error| terminal_error("leave", &error))
    }

    /// Takes the terminal again: others had it.
    pub(crate) fn redraw_all(&mut self) -> Result<(), ErrorReport> {
        self.fresh = DrawnState::Stale;
        // It may have another mode by now, though we have not given it back.
        disable_raw_mode().map_err(|error| terminal_error("take", &error))?;
        enter_screen().map_err(|error| terminal_error("take", &error))
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        leave_screen();
    }
}

fn enter_screen() -> std::io::Result<()> {
    enable_raw_mode()?;
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, Hide)
}

/// As far as it goes: the terminal may be gone.
fn leave_screen() {
    execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show).ok();
    disable_raw_mode().ok();
}

fn terminal_error(verb: &str, error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot {verb} the terminal: {error}"))
}

/// A panic gives the terminal back, says what it is and ends us, whichever thread's it is: without the one that looks the
/// screen would show old things as if they were new.
fn install_panic_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        leave_screen();
        before(panic);
        std::process::exit(ErrorKind::Internal.exit_code().into());
    }));
}

/// A thread that turns signals into events, from before the terminal is taken.
pub(crate) fn catch_signals(sender: &Sender<UiEvent>) -> Result<(), ErrorReport> {
    let signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, SIGCONT]);
    let mut signals = signals
        .map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot catch signals: {error}")))?;
    let sender = sender.clone();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let event = match signal {
                SIGTSTP => UiEvent::SuspendRequested,
                SIGCONT => UiEvent::Continued,
                ends => UiEvent::Terminate(128 + u8::try_from(ends).unwrap_or(0)),
            };
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// In a process of its own, which is this test again.
    #[test]
    fn panic_in_any_thread_exits_with_its_message() {
        if std::env::var_os("PANICS").is_some() {
            install_panic_hook();
            std::thread::spawn(|| panic!("a fault of ours")).join().ok();
            return;
        }
        let name = "terminal::tests::panic_in_any_thread_exits_with_its_message";
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args(["--exact", name, "--nocapture"]).env("PANICS", "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(70), "{output:?}");
        assert!(said.contains("a fault of ours"), "{said}");
    }
}
