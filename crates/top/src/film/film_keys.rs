//! What each key does in a film.

use super::film_commands_and_status::FilmCommand;
use super::film_marks::{JumpDirection, MarkKind};
use crate::ui_events_and_effects::{BackgroundAction, Key, UiEffect};
use crate::ui_state::{ActiveView, UiState};

/// How far a key skips, in milliseconds.
const SKIP: i64 = 10_000;

/// Handles a key that has a different effect in a film, which plays a recorded team, than on the
/// screen of a running team. Returns `None` if the key has the same effect in both.
pub(crate) fn handle_film_key(state: &mut UiState, key: Key) -> Option<Vec<UiEffect>> {
    state.film.as_ref()?;
    if is_action_on_team(key, state.view) {
        return Some(state.refuse("this is a film: no key acts on a team; ? lists the keys"));
    }
    let command = film_command(key)?;
    Some(vec![UiEffect::Background(BackgroundAction::MoveFilm(command))])
}

/// Whether a key acts on a running team. In the lists, `n` finds the next match.
fn is_action_on_team(key: Key, view: ActiveView) -> bool {
    match key {
        Key::Char('s' | 'x' | 'K' | 'a' | 't') => true,
        Key::Char('y' | 'n') => view == ActiveView::Details,
        _ => false,
    }
}

fn film_command(key: Key) -> Option<FilmCommand> {
    use {JumpDirection as Direction, MarkKind as Kind};
    Some(match key {
        Key::Char(' ') => FilmCommand::TogglePause,
        Key::Char('+' | '=') => FilmCommand::Faster,
        Key::Char('-') => FilmCommand::Slower,
        Key::Left => FilmCommand::Skip(-SKIP),
        Key::Right => FilmCommand::Skip(SKIP),
        Key::Char(']') => FilmCommand::Jump(Kind::Message, Direction::Next),
        Key::Char('[') => FilmCommand::Jump(Kind::Message, Direction::Previous),
        Key::Char('}') => FilmCommand::Jump(Kind::Failure, Direction::Next),
        Key::Char('{') => FilmCommand::Jump(Kind::Failure, Direction::Previous),
        Key::Char(')') => FilmCommand::Jump(Kind::Request, Direction::Next),
        Key::Char('(') => FilmCommand::Jump(Kind::Request, Direction::Previous),
        Key::Home => FilmCommand::GoToStart,
        Key::End => FilmCommand::GoToEnd,
        _ => return None,
    })
}
