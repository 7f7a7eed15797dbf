//! Drawn on a terminal of letters alone. A screen that is meant to change is written anew with `SCREENS=write`.

use super::{WHOLE, letter, member, press, request, state, survey, text};
use crate::draw::draw;
use crate::event::{Event, Key, Told};
use crate::manner::{Colors, Letters, Manner};
use crate::sight::{Daemon, Part, Sight};
use crate::state::State;
use crate::update::update;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

fn drawn(state: &State) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    terminal.draw(|frame| draw(state, frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn lines(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let (mut text, mut covered) = (String::new(), 0);
        for cell in cells {
            // What stands behind a wide letter is no letter of its own.
            if covered == 0 {
                text.push_str(cell.symbol());
                covered = ratatui::text::Span::raw(cell.symbol()).width();
            }
            covered = covered.saturating_sub(1);
        }
        text.trim_end().to_owned()
    };
    buffer.content.chunks(width).map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// The whole screen, as text.
pub(super) fn shown(state: &State) -> String {
    lines(&drawn(state))
}

#[allow(clippy::disallowed_methods, reason = "the test's own expectation, where it is asked for")]
fn is(name: &str, state: &State) {
    let shown = lines(&drawn(state));
    let path = format!("{}/src/tests/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("SCREENS").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name}: this is shown:\n{shown}");
}

#[test]
fn a_team_at_work() {
    is("lists", &state(survey(), (80, 24)));
    is("wide", &state(survey(), (132, 30)));
    is("narrow", &state(survey(), (48, 12)));
    is("small", &state(survey(), (39, 24)));
}

#[test]
fn the_readme_shows_what_is_shown() {
    let readme = include_str!("../../../../README.md");
    let shown = lines(&drawn(&state(survey(), (80, 24))));
    for line in shown.lines() {
        assert!(readme.contains(line), "{line}");
    }
}

#[test]
fn each_part_has_the_keys_in_turn() {
    let mut state = state(survey(), (80, 24));
    for (name, part) in [("requests", Part::Requests), ("tasks", Part::Tasks), ("messages", Part::Messages)] {
        press(&mut state, &[Key::Tab]);
        assert_eq!(state.part, part);
        is(name, &state);
    }
}

#[test]
fn one_thing_whole_and_the_help() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::Down, Key::Enter]);
    let screen = "its pane shows:\n$ less manual".to_owned();
    update(&mut state, Event::Screen { name: "ann".to_owned(), text: screen });
    let why = "ann works on task 2.\n  its turn 3 began at 14:05".to_owned();
    update(&mut state, Event::Why { name: "ann".to_owned(), text: why });
    is("member", &state);
    press(&mut state, &[Key::Escape, Key::Tab, Key::Enter]);
    is("request", &state);
    press(&mut state, &[Key::Escape, Key::Tab, Key::Down, Key::Enter]);
    is("task", &state);
    press(&mut state, &[Key::Escape, Key::Tab, Key::Enter]);
    is("message", &state);
    press(&mut state, &[Key::Escape, Key::Char('?')]);
    is("help", &state);
}

#[test]
fn what_is_typed_asked_and_told_stands_at_the_bottom() {
    let mut state = state(survey(), (80, 24));
    press(&mut state, &[Key::Down, Key::Char('s')]);
    text(&mut state, "are you done?");
    is("send", &state);
    press(&mut state, &[Key::Escape, Key::Char('K')]);
    is("kill", &state);
    press(&mut state, &[Key::Escape]);
    let long = "cannot reach teamd at /run/user/1000/teamd/b074b113f327/control.sock: No such file or directory\n  start it with: teamctl up";
    update(&mut state, Event::Told(Told::failed(long)));
    is("told", &state);
    text(&mut state, "/b");
    update(&mut state, Event::Told(Told::done("done")));
    is("filter", &state);
}

#[test]
fn a_dead_daemon_and_an_empty_team_are_told() {
    let down = Sight { daemon: Daemon::Down, requests: Some(vec![]), ..Sight::default() };
    is("down", &state(down, (80, 24)));
}

#[test]
fn requests_that_can_not_be_read_are_not_told_as_none() {
    is("unread", &state(Sight { requests: None, ..survey() }, (80, 24)));
}

#[test]
fn what_is_used_up_has_a_column_where_a_program_tells_it() {
    let mut sight = survey();
    sight.budget = "12 of 200 turns, until 16:00, 14.1k of 5.0M tokens".to_owned();
    sight.members[1].used = "12.3k $0.42".to_owned();
    sight.members[3].used = "1.8k".to_owned();
    is("used", &state(sight, (80, 24)));
}

#[test]
fn ascii_where_the_locale_has_no_more() {
    let mut state = state(survey(), (80, 24));
    state.manner = Manner { letters: Letters::Ascii, ..WHOLE };
    std::sync::Arc::make_mut(&mut state.sight).members[1].last = "schön…".to_owned();
    is("ascii", &state);
    assert!(lines(&drawn(&state)).is_ascii());
}

#[test]
fn without_colour_every_cell_has_the_terminals_own() {
    let mut state = state(survey(), (80, 24));
    let colored = lines(&drawn(&state));
    state.manner = Manner { colors: Colors::None, ..WHOLE };
    let plain = drawn(&state);
    assert_eq!(lines(&plain), colored, "colours say nothing that words do not");
    assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn hostile_texts_steer_nothing_and_keep_to_their_lines() {
    let evil = "x\u{1b}[2J\u{9b}31m\u{202e}abc\u{200b}\r\n* team-lead\tok 漢字";
    let sight = Sight {
        daemon: Daemon::Answers,
        members: vec![member(evil, evil, evil, evil, evil)],
        messages: vec![letter(1, evil, evil, evil)],
        requests: Some(vec![request(evil, evil, evil)]),
        ..Sight::default()
    };
    let mut state = state(sight, (80, 24));
    is("hostile", &state);
    press(&mut state, &[Key::Enter]);
    is("hostile-whole", &state);
    for width in 1..100 {
        state.size = (width, 12);
        let shown = drawn(&state);
        let steers = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(shown.content.iter().all(|cell| !cell.symbol().contains(steers)), "{width}");
    }
}

#[test]
fn any_size_is_drawn() {
    let mut state = state(survey(), (80, 24));
    for keys in [&[][..], &[Key::Enter], &[Key::Escape, Key::Char('?')], &[Key::Escape, Key::Char('s')]] {
        press(&mut state, keys);
        for (width, height) in (1..60).flat_map(|width| (1..30).map(move |height| (width, height))) {
            state.size = (width, height);
            drawn(&state);
        }
        state.size = (80, 24);
    }
}

#[test]
fn many_are_scrolled_and_the_chosen_one_is_always_seen() {
    let mut sight = survey();
    sight.members = (0..50).map(|n| member(&format!("a{n}"), "", "idle", "", "")).collect();
    sight.messages = (0..1000).map(|n| letter(n, "a1", "a2", &format!("message {n}"))).collect();
    let mut state = state(sight, (80, 24));
    for _ in 0..60 {
        assert!(lines(&drawn(&state)).contains('>'));
        press(&mut state, &[Key::Down]);
    }
    assert!(lines(&drawn(&state)).contains(">a49"));
    assert!(lines(&drawn(&state)).contains("message 999"), "the stream stands at its end");
}
