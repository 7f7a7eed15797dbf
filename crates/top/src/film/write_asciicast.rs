//! Writes a film as an asciicast file (version 2), which asciinema plays. No terminal is needed,
//! and the same film always gives the same bytes.

use super::recorded_film::Film;
use crate::detail_page_layout::mark_drawn;
use crate::draw::draw;
use crate::terminal_capabilities::{Charset, ColorSupport, TerminalCapabilities};
use crate::ui_events_and_effects::{BackgroundAction, UiEffect, UiEvent};
use crate::ui_state::UiState;
use crate::update_ui_state::update;
use client::suggested_commands::SuggestedCommands;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use serde_json::json;
use std::cell::RefCell;
use std::io::{Result, Write};
use std::rc::Rc;
use std::time::Duration;

/// What a terminal gets before the first frame, and after the last one.
const START: &str = "\u{1b}[2J\u{1b}[H";
const END: &str = "\u{1b}[?25h";

/// What the players of asciicasts can show.
const CAPABILITIES: TerminalCapabilities =
    TerminalCapabilities { colors: ColorSupport::Enabled, charset: Charset::Unicode };

/// Writes the film from its position to its end, for a terminal of this size.
pub(super) fn write_asciicast(film: &mut Film, size: (u16, u16), out: &mut dyn Write) -> Result<()> {
    let (width, height) = size;
    let (team, started_at) = (film.record().team.clone(), film.record().started_at / 1_000);
    let title = format!("teamctl replay: the team {team}");
    let header =
        json!({"version": 2, "width": width, "height": height, "timestamp": started_at, "title": title});
    writeln!(out, "{header}")?;
    let mut state = UiState::new(team, SuggestedCommands::default(), CAPABILITIES, size);
    let (mut screen, mut time) = (CastScreen::new(size)?, Duration::ZERO);
    screen.written.borrow_mut().extend(START.as_bytes());
    loop {
        show(film, &mut state);
        screen.draw(&mut state)?;
        screen.flush_to(time, out)?;
        let Some(frame) = film.next_frame() else { break };
        time += frame.delay;
        film.seek(frame.position);
    }
    screen.written.borrow_mut().extend(END.as_bytes());
    screen.flush_to(time, out)
}

/// Makes the state that of the film's position.
fn show(film: &mut Film, state: &mut UiState) {
    for effect in update(state, film.event()) {
        if let UiEffect::Background(BackgroundAction::CapturePane { name, .. }) = effect {
            let output = film.output(&name);
            update(state, UiEvent::PaneCaptured { name, output });
        }
    }
}

/// A terminal whose output is kept in memory.
struct CastScreen {
    terminal: Terminal<CrosstermBackend<SharedBytes>>,
    /// What was written and is not in the cast yet.
    written: Rc<RefCell<Vec<u8>>>,
}

struct SharedBytes(Rc<RefCell<Vec<u8>>>);

impl CastScreen {
    fn new((width, height): (u16, u16)) -> Result<CastScreen> {
        let written = Rc::new(RefCell::new(Vec::new()));
        let backend = CrosstermBackend::new(SharedBytes(Rc::clone(&written)));
        let viewport = Viewport::Fixed(Rect::new(0, 0, width, height));
        let terminal = Terminal::with_options(backend, TerminalOptions { viewport })?;
        Ok(CastScreen { terminal, written })
    }

    fn draw(&mut self, state: &mut UiState) -> Result<()> {
        self.terminal.draw(|frame| draw(state, frame.buffer_mut()))?;
        mark_drawn(state);
        Ok(())
    }

    /// Writes an event of the cast at this time with what was written since the last one.
    fn flush_to(&mut self, time: Duration, out: &mut dyn Write) -> Result<()> {
        let bytes = std::mem::take(&mut *self.written.borrow_mut());
        let seconds = json!(time.as_secs_f64());
        writeln!(out, "{}", json!([seconds, "o", String::from_utf8_lossy(&bytes)]))
    }
}

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.0.borrow_mut().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
