//! The event loop of the screen.

use crate::background_action_threads::BackgroundRunner;
use crate::clipboard_program;
use crate::terminal_screen::TerminalScreen;
use crate::tmux_client_of_this_pane::is_inside_tmux;
use crate::ui_events_and_effects::{BackgroundAction, UiEffect, UiEvent};
use crate::ui_state::UiState;
use crate::update_ui_state::update;
use protocol::error_kind_and_report::ErrorReport;
use std::sync::mpsc::Receiver;

/// Why the event loop has ended.
pub(crate) enum LoopEnd {
    /// The program ends with this exit code.
    Quit(u8),
    ChooseTeam,
}

/// Handles events until the program ends. The screen is drawn after each event that changed the
/// state. So each key is handled with the state that the person sees.
pub(crate) fn run_event_loop(
    screen: &mut TerminalScreen,
    effects: &mut dyn BackgroundRunner,
    mut state: UiState,
    events: &Receiver<UiEvent>,
) -> Result<LoopEnd, ErrorReport> {
    screen.draw(&mut state)?;
    while let Ok(event) = events.recv() {
        let before = state.clone();
        for effect in update(&mut state, event) {
            match effect {
                UiEffect::Quit(code) => return Ok(LoopEnd::Quit(code)),
                UiEffect::ChooseTeam => return Ok(LoopEnd::ChooseTeam),
                UiEffect::Suspend => screen.suspend()?,
                UiEffect::Redraw => screen.redraw_all()?,
                UiEffect::SetMouse(mode) => screen.set_mouse(mode)?,
                UiEffect::Copy(text) => {
                    clipboard_program::copy_in_background(&text);
                    match is_inside_tmux() {
                        true => effects.start(BackgroundAction::CopyToTmux { text }),
                        false => screen.copy(&text)?,
                    }
                }
                UiEffect::Background(action) => effects.start(action),
            }
        }
        if state != before || screen.is_stale() {
            screen.draw(&mut state)?;
        }
    }
    Ok(LoopEnd::Quit(0))
}
