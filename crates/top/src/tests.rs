//! Tests of the effects of keys, and of whole screens, which are compared with text files. This
//! module has the example data.

mod busy_team_screens;
mod film;
mod keys;
mod screens;

use crate::detail_page_layout::mark_drawn;
use crate::team_snapshot_for_screen::{
    DaemonReachability, EventItem, MemberItem, MessageItem, RequestItem, ScreenSnapshot, TeamPresence,
};
use crate::terminal_capabilities::{Charset, ColorSupport, TerminalCapabilities};
use crate::ui_events_and_effects::{Key, UiEffect, UiEvent};
use crate::ui_state::UiState;
use crate::update_ui_state::update;
use client::suggested_commands::SuggestedCommands;
use protocol::task::Task;
use protocol::team_and_member_names::TeamName;
use std::sync::Arc;

const FULL_CAPABILITIES: TerminalCapabilities =
    TerminalCapabilities { colors: ColorSupport::Enabled, charset: Charset::Unicode };

/// Creates the state of a screen of this size that shows this snapshot.
fn state(snapshot: ScreenSnapshot, size: (u16, u16)) -> UiState {
    let mut state = UiState::new(
        TeamName::parse("survey").unwrap(),
        SuggestedCommands::default(),
        FULL_CAPABILITIES,
        size,
    );
    update(&mut state, UiEvent::SnapshotRead(Box::new(snapshot)));
    state
}

/// Presses the keys and draws after each key. Returns the effects.
fn press_keys(state: &mut UiState, keys: &[Key]) -> Vec<UiEffect> {
    let press = |key: &Key| {
        let effects = update(state, UiEvent::Key(*key));
        mark_drawn(state);
        effects
    };
    keys.iter().flat_map(press).collect()
}

fn type_text(state: &mut UiState, text: &str) -> Vec<UiEffect> {
    press_keys(state, &text.chars().map(Key::Char).collect::<Vec<_>>())
}

fn member(name: &str, color: &str, state: &str, task: &str, last_line: &str) -> MemberItem {
    MemberItem {
        name: name.to_owned(),
        color: color.to_owned(),
        state: state.to_owned(),
        since: "14:05".to_owned(),
        unread: Some(0),
        task: task.to_owned(),
        usage: String::new(),
        last_line: last_line.to_owned(),
        pane: Some("%3".to_owned()),
        details: vec!["lifecycle running".to_owned(), "pane %3".to_owned()],
    }
}

fn message(number: u64, from: &str, to: &str, summary: &str) -> Arc<MessageItem> {
    let time_text = format!("14:{number:02}");
    let (from, to, summary, text) =
        (from.to_owned(), to.to_owned(), summary.to_owned(), format!("{summary}, in full"));
    Arc::new(MessageItem { number, at: number, time_text, from, to, summary, text, count: 1 })
}

fn event(time_text: &str, text: &str) -> EventItem {
    EventItem { time_text: time_text.to_owned(), text: text.to_owned() }
}

fn request(id: &str, from: &str, details: &str) -> RequestItem {
    let summary = details.lines().next().unwrap_or_default().to_owned();
    RequestItem {
        id: id.to_owned(),
        from: from.to_owned(),
        since: "14:07".to_owned(),
        summary,
        details: details.to_owned(),
    }
}

/// A snapshot with items of each kind.
fn example_snapshot() -> ScreenSnapshot {
    let tasks = [
        r#"{"id":"1","subject":"count the lines","status":"completed","owner":"ann"}"#,
        r#"{"id":"2","subject":"read the manual","status":"in_progress","owner":"ann"}"#,
        r#"{"id":"3","subject":"draw the map","status":"pending"}"#,
        r#"{"id":"4","subject":"write it up","status":"pending","blockedBy":["2","3"]}"#,
        r#"{"id":"5","subject":"send it","status":"pending","owner":"bob","blockedBy":["4"]}"#,
    ];
    let tasks: Vec<Task> = tasks.iter().map(|text| Task::parse(text).unwrap()).collect();
    let lead = MemberItem { state: "lead".to_owned(), unread: Some(2), ..MemberItem::default() };
    ScreenSnapshot {
        daemon: DaemonReachability::Running,
        team: TeamPresence::Exists,
        tmux_socket: Some("/tmux".into()),
        budget: String::new(),
        members: vec![
            MemberItem { name: "team-lead".to_owned(), ..lead },
            member("ann", "blue", "active", "#2 read the manual", "reading chapter 3 of 9, which is long"),
            member("bob", "green", "idle!asks", "", "waiting"),
            MemberItem { unread: None, pane: None, ..member("carla", "red", "failed", "", "exit 1") },
        ],
        tasks: Arc::new(crate::task_items_by_dependency::task_items(&tasks, &[])),
        messages: vec![
            message(1, "team-lead", "ann", "read the manual"),
            message(2, "ann", "team-lead", "task 1 completed"),
            message(3, "bob", "ann", "which chapter do you read?"),
        ],
        events: vec![
            event("14:01", "teamd ready: pid 7, root /home/ada/.claude"),
            event("14:05", "ann active: read the manual"),
            event("14:07", "bob asks to use Bash: perm-1"),
        ],
        requests: Some(vec![request(
            "perm-1",
            "bob",
            "asks to use Bash: run the tests\ninput: {\n  \"command\": \"make test\"\n}",
        )]),
    }
}
