//! Tests of the film of a recorded team: the fold of its lines, its keys and its screens.

use super::screens::{assert_screen, screen_text};
use super::{FULL_CAPABILITIES, press_keys};
use crate::film::film_commands_and_status::FilmCommand;
use crate::film::film_marks::{JumpDirection, MarkKind};
use crate::film::playback::{FilmMotion, FilmSpeed, LongPauses};
use crate::film::recorded_film::{Film, FilmMove};
use crate::ui_events_and_effects::{BackgroundAction, Key, MemberOutput, UiEffect, UiEvent};
use crate::ui_state::{ActiveView, UiState};
use crate::update_ui_state::update;
use client::read_team_record::TeamRecord;
use client::suggested_commands::SuggestedCommands;
use jiff::tz::TimeZone;
use protocol::team_and_member_names::TeamName;

/// The record of a team with two members, two tasks, a request and a failure.
const RECORD: &str = include_str!("survey_record.jsonl");

fn team() -> TeamName {
    TeamName::parse("survey").unwrap()
}

fn film() -> Film {
    let record = TeamRecord::parse(team(), RECORD);
    assert_eq!(record.missing_part(), None);
    Film::new(record, FilmSpeed::parse("1").unwrap(), LongPauses::Shortened, TimeZone::UTC)
}

/// A screen of this size that shows the film.
fn film_screen(film: &mut Film, size: (u16, u16)) -> UiState {
    let mut state = UiState::new(team(), SuggestedCommands::default(), FULL_CAPABILITIES, size);
    update(&mut state, film.event());
    state
}

/// Carries out a command on the film, and shows it.
fn run(film: &mut Film, state: &mut UiState, command: FilmCommand) {
    film.run(command).unwrap();
    for effect in update(state, film.event()) {
        if let UiEffect::Background(BackgroundAction::CapturePane { name, .. }) = effect {
            let output = film.output(&name);
            update(state, UiEvent::PaneCaptured { name, output });
        }
    }
}

/// Presses a key, and carries out its command on the film.
fn press(film: &mut Film, state: &mut UiState, key: Key) {
    let effects = press_keys(state, &[key]);
    let [UiEffect::Background(BackgroundAction::MoveFilm(command))] = effects[..] else {
        panic!("{key:?}: {effects:?}");
    };
    run(film, state, command);
}

fn position(film: &mut Film) -> u64 {
    let UiEvent::FilmMoved(_, status) = film.event() else { panic!("no event of the film") };
    status.playback.position
}

#[test]
fn film_is_drawn_at_each_size() {
    let mut film = film();
    for (name, offset) in [("film-request", 20_000), ("film-end", 95_000)] {
        film.seek(offset);
        assert_screen(name, &film_screen(&mut film, (80, 24)));
    }
    film.seek(86_000);
    let mut state = film_screen(&mut film, (200, 50));
    press_keys(&mut state, &[Key::Down, Key::Up]);
    run(&mut film, &mut state, FilmCommand::TogglePause);
    assert_screen("film-200x50", &state);
    assert_screen("film-narrow", &film_screen(&mut film, (40, 10)));
}

#[test]
fn move_back_shows_what_was_shown_before() {
    let (mut film, mut shown) = (film(), Vec::new());
    let offsets: Vec<u64> = (0..=100_000).step_by(5_000).collect();
    for offset in &offsets {
        film.seek(*offset);
        shown.push(screen_text(&film_screen(&mut film, (200, 50))));
    }
    for (offset, before) in offsets.iter().zip(&shown).rev() {
        film.seek(*offset);
        assert_eq!(screen_text(&film_screen(&mut film, (200, 50))), *before, "at {offset} ms");
    }
}

#[test]
fn keys_move_the_film() {
    let mut film = film();
    let mut state = film_screen(&mut film, (80, 24));
    let steps = [
        (Key::Char(']'), 10_000),
        (Key::Char(')'), 12_000),
        (Key::Char('}'), 90_100),
        (Key::Char('['), 85_200),
        (Key::Char('('), 12_000),
        (Key::Right, 22_000),
        (Key::Left, 12_000),
        (Key::End, 95_000),
        (Key::Char('{'), 90_100),
        (Key::Home, 0),
        (Key::Left, 0),
    ];
    for (key, expected) in steps {
        press(&mut film, &mut state, key);
        assert_eq!(position(&mut film), expected, "{key:?}");
    }
    let no_target = film.run(FilmCommand::Jump(MarkKind::Request, JumpDirection::Previous));
    assert_eq!(no_target, Err("there is no earlier request".to_owned()));
}

#[test]
fn space_pauses_and_the_speed_has_two_keys() {
    let mut film = film();
    let mut state = film_screen(&mut film, (80, 24));
    press(&mut film, &mut state, Key::Char('+'));
    press(&mut film, &mut state, Key::Char('+'));
    assert!(screen_text(&state).contains("playing 0:00:00 of 0:01:35, 4x "), "{}", screen_text(&state));
    press(&mut film, &mut state, Key::Char('-'));
    press(&mut film, &mut state, Key::Char(' '));
    assert!(screen_text(&state).contains("paused 0:00:00 of 0:01:35, 2x "), "{}", screen_text(&state));
    assert_eq!((film.next_frame(), state.film.as_ref().unwrap().playback.motion), (None, FilmMotion::Paused));
    press(&mut film, &mut state, Key::Char(' '));
    let frame = film.next_frame().unwrap();
    assert_eq!((frame.delay.as_millis(), frame.position), (100, 200));
    assert_eq!(film.seek(frame.position), FilmMove::Forward(1..2));
}

#[test]
fn keys_that_act_on_a_team_are_off() {
    let mut film = film();
    film.seek(20_000);
    let mut state = film_screen(&mut film, (80, 24));
    let is_refused = |state: &mut UiState, key: char| {
        let before = state.view;
        assert_eq!(press_keys(state, &[Key::Char(key)]), [], "{key}");
        assert!(screen_text(state).contains("this is a film: no key acts on a team"), "{key}");
        assert_eq!(state.view, before, "{key}");
    };
    for key in ['s', 'x', 'K', 'a', 't'] {
        is_refused(&mut state, key);
    }
    press_keys(&mut state, &[Key::Tab, Key::Enter]);
    assert_eq!(state.view, ActiveView::Details);
    assert!(screen_text(&state).contains("asks to use Bash: list the files"));
    for key in ['y', 'n', 's', 'K'] {
        is_refused(&mut state, key);
    }
}

#[test]
fn reading_keys_work_in_a_film() {
    let mut film = film();
    film.seek(95_000);
    let mut state = film_screen(&mut film, (80, 24));
    press_keys(&mut state, &[Key::Char('/')]);
    press_keys(&mut state, &"all of them".chars().map(Key::Char).collect::<Vec<_>>());
    press_keys(&mut state, &[Key::Enter, Key::Enter]);
    assert!(screen_text(&state).contains("All of them?"), "{}", screen_text(&state));
    assert!(matches!(press_keys(&mut state, &[Key::Char('c')])[..], [UiEffect::Copy(_)]));
    press_keys(&mut state, &[Key::Escape, Key::Char('?')]);
    assert_screen("film-help", &state);
}

#[test]
fn output_of_a_member_is_on_its_page() {
    let mut film = film();
    film.seek(95_000);
    let output = |film: &Film, name: &str| film.output(name);
    assert_eq!(
        output(&film, "ann"),
        MemberOutput::Log("reading a.md\n\u{1b}[32m12\u{1b}[0m a.md".to_owned())
    );
    film.seek(80_000);
    assert_eq!(output(&film, "ann"), MemberOutput::Log(String::new()));
}

#[test]
fn hostile_text_of_a_record_is_contained() {
    let hostile = RECORD.replace("count the lines", "x\\u001b[2J\\u202e").replace("asks", "\\u009b31m");
    let record = TeamRecord::parse(team(), &hostile);
    let mut film = Film::new(record, FilmSpeed::parse("1").unwrap(), LongPauses::Shortened, TimeZone::UTC);
    film.seek(20_000);
    let text = screen_text(&film_screen(&mut film, (200, 50)));
    assert!(text.contains("\\u{1b}[2J") && !text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{text}");
}
