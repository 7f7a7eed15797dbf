//! Tests of whole screens, which are drawn on a terminal in memory and compared with the files in
//! `screens/`. `SCREENS=write cargo test -p teamd-top` rewrites the files.

use super::{
    FULL_CAPABILITIES, event, example_snapshot, member, message, press_keys, request, state, type_text,
};
use crate::draw::draw;
use crate::team_snapshot_for_screen::{DaemonReachability, Panel, ScreenSnapshot};
use crate::terminal_capabilities::{Charset, ColorSupport, TerminalCapabilities};
use crate::ui_events_and_effects::{ActionResult, Key, MemberOutput, UiEvent};
use crate::ui_state::UiState;
use crate::update_ui_state::update;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::Color;

fn draw_buffer(state: &UiState) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    terminal.draw(|frame| draw(state, frame.buffer_mut())).unwrap();
    terminal.backend().buffer().clone()
}

fn buffer_text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let line = |cells: &[ratatui::buffer::Cell]| {
        let (mut text, mut covered) = (String::new(), 0);
        for cell in cells {
            // The cell after a wide character is empty.
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

/// The text of the whole screen.
pub(super) fn screen_text(state: &UiState) -> String {
    buffer_text(&draw_buffer(state))
}

#[allow(clippy::disallowed_methods, reason = "writes the expected screens of this test")]
pub(super) fn assert_screen(name: &str, state: &UiState) {
    let screen = buffer_text(&draw_buffer(state));
    let path = format!("{}/src/tests/screens/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("SCREENS").is_some() {
        std::fs::write(&path, &screen).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(screen, expected, "{name}: the screen is:\n{screen}");
}

#[test]
fn working_team_is_drawn_at_each_size() {
    assert_screen("lists", &state(example_snapshot(), (80, 24)));
    assert_screen("wide", &state(example_snapshot(), (132, 30)));
    assert_screen("narrow", &state(example_snapshot(), (48, 12)));
    assert_screen("small", &state(example_snapshot(), (39, 24)));
}

#[test]
fn each_panel_can_have_focus() {
    let mut state = state(example_snapshot(), (80, 24));
    for (name, panel) in
        [("requests", Panel::Requests), ("tasks", Panel::Tasks), ("messages", Panel::Messages)]
    {
        press_keys(&mut state, &[Key::Tab]);
        assert_eq!(state.panel, panel);
        assert_screen(name, &state);
    }
}

#[test]
fn detail_pages_and_help_are_drawn() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down, Key::Enter]);
    let output = MemberOutput::Screen("$ less manual".to_owned());
    update(&mut state, UiEvent::PaneCaptured { name: "ann".to_owned(), output });
    let diagnosis = "ann works on task 2.\n  its turn 3 began at 14:05".to_owned();
    update(&mut state, UiEvent::Diagnosed { name: "ann".to_owned(), text: diagnosis });
    assert_screen("member", &state);
    press_keys(&mut state, &[Key::Escape, Key::Tab, Key::Enter]);
    assert_screen("request", &state);
    press_keys(&mut state, &[Key::Escape, Key::Tab, Key::Down, Key::Enter]);
    assert_screen("task", &state);
    press_keys(&mut state, &[Key::Escape, Key::Tab, Key::Enter]);
    assert_screen("message", &state);
    press_keys(&mut state, &[Key::Escape, Key::Char('?')]);
    assert_screen("help", &state);
}

#[test]
fn selected_item_is_drawn_beside_the_lists() {
    for size in [(120, 40), (200, 50), (300, 80)] {
        let mut state = state(example_snapshot(), size);
        press_keys(&mut state, &[Key::Down]);
        let lines = (1..=60).map(|n| format!("\u{1b}[32mok\u{1b}[39m chapter {n} {}\n", "x".repeat(50)));
        let output = MemberOutput::Screen(lines.collect());
        update(&mut state, UiEvent::PaneCaptured { name: "ann".to_owned(), output });
        assert_screen(&format!("beside-{}x{}", size.0, size.1), &state);
        let buffer = draw_buffer(&state);
        let is_green = |cell: &ratatui::buffer::Cell| cell.symbol() == "k" && cell.fg == Color::Green;
        assert!(buffer.content.iter().any(is_green), "the output has its colors");
    }
    let mut state = state(example_snapshot(), (120, 40));
    press_keys(&mut state, &[Key::Tab, Key::Enter]);
    assert_screen("beside-request", &state);
    press_keys(&mut state, &[Key::Escape, Key::Tab, Key::Down]);
    assert_screen("beside-task", &state);
}

#[test]
fn prompts_and_results_are_drawn() {
    let mut state = state(example_snapshot(), (80, 24));
    press_keys(&mut state, &[Key::Down, Key::Char('s')]);
    type_text(&mut state, "are you done?");
    assert_screen("send", &state);
    press_keys(&mut state, &[Key::Escape, Key::Char('K')]);
    assert_screen("kill", &state);
    press_keys(&mut state, &[Key::Escape]);
    let long = "cannot reach teamd at /run/user/1000/teamd/b074b113f327/control.sock: No such file or directory\n  start it with: teamctl up";
    update(&mut state, UiEvent::ActionFinished(ActionResult::failure(long)));
    assert_screen("told", &state);
    type_text(&mut state, "fb");
    update(&mut state, UiEvent::ActionFinished(ActionResult::success("done")));
    assert_screen("filter", &state);
}

#[test]
fn stopped_daemon_and_empty_team_are_drawn() {
    let down = ScreenSnapshot {
        daemon: DaemonReachability::NotRunning,
        requests: Some(vec![]),
        ..ScreenSnapshot::default()
    };
    assert_screen("down", &state(down, (80, 24)));
}

#[test]
fn unreadable_requests_are_not_shown_as_none() {
    assert_screen("unread", &state(ScreenSnapshot { requests: None, ..example_snapshot() }, (80, 24)));
}

#[test]
fn usage_column_appears_with_usage() {
    let mut snapshot = example_snapshot();
    snapshot.budget = "12 of 200 turns, until 16:00, 14.1k of 5.0M tokens".to_owned();
    snapshot.members[1].usage = "12.3k $0.42".to_owned();
    snapshot.members[3].usage = "1.8k".to_owned();
    assert_screen("used", &state(snapshot, (80, 24)));
}

#[test]
fn ascii_locale_gets_only_ascii() {
    let mut state = state(example_snapshot(), (80, 24));
    state.capabilities = TerminalCapabilities { charset: Charset::Ascii, ..FULL_CAPABILITIES };
    std::sync::Arc::make_mut(&mut state.snapshot).members[1].last_line = "schön…".to_owned();
    assert_screen("ascii", &state);
    assert!(buffer_text(&draw_buffer(&state)).is_ascii());
}

#[test]
fn text_is_complete_without_colors() {
    let mut state = state(example_snapshot(), (80, 24));
    let colored_text = buffer_text(&draw_buffer(&state));
    state.capabilities = TerminalCapabilities { colors: ColorSupport::Disabled, ..FULL_CAPABILITIES };
    let buffer = draw_buffer(&state);
    assert_eq!(buffer_text(&buffer), colored_text, "the text is the same without colors");
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
}

#[test]
fn hostile_text_is_contained() {
    let hostile = "x\u{1b}[2J\u{9b}31m\u{202e}abc\u{200b}\r\n* team-lead\tok 漢字";
    let snapshot = ScreenSnapshot {
        daemon: DaemonReachability::Running,
        members: vec![member(hostile, hostile, hostile, hostile, hostile)],
        messages: vec![message(1, hostile, hostile, hostile)],
        events: vec![event(hostile, hostile)],
        requests: Some(vec![request(hostile, hostile, hostile)]),
        ..ScreenSnapshot::default()
    };
    let mut state = state(snapshot, (80, 24));
    assert_screen("hostile", &state);
    press_keys(&mut state, &[Key::Enter]);
    assert_screen("hostile-whole", &state);
    for size in (1..100).map(|width| (width, 12)).chain([(120, 40)]) {
        state.size = size;
        let buffer = draw_buffer(&state);
        let is_forbidden = |c: char| c.is_control() || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(buffer.content.iter().all(|cell| !cell.symbol().contains(is_forbidden)), "{size:?}");
    }
}

#[test]
fn any_size_is_drawn() {
    let mut state = state(example_snapshot(), (80, 24));
    for keys in [&[][..], &[Key::Enter], &[Key::Escape, Key::Char('?')], &[Key::Escape, Key::Char('s')]] {
        press_keys(&mut state, keys);
        for (width, height) in
            (1..60).chain([119, 120, 300]).flat_map(|width| (1..34).map(move |height| (width, height)))
        {
            state.size = (width, height);
            draw_buffer(&state);
        }
        state.size = (80, 24);
    }
}

#[test]
fn long_lists_scroll_to_the_selection() {
    let mut snapshot = example_snapshot();
    snapshot.members = (0..50).map(|n| member(&format!("a{n}"), "", "idle", "", "")).collect();
    snapshot.messages = (0..1000).map(|n| message(n, "a1", "a2", &format!("message {n}"))).collect();
    let mut state = state(snapshot, (80, 24));
    for _ in 0..60 {
        assert!(buffer_text(&draw_buffer(&state)).contains('>'));
        press_keys(&mut state, &[Key::Down]);
    }
    assert!(buffer_text(&draw_buffer(&state)).contains(">a49"));
    assert!(buffer_text(&draw_buffer(&state)).contains("message 999"), "the list of messages is at its end");
}
