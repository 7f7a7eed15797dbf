//! Tests of the screen of a team that has more members, tasks and messages than fit, at the usual
//! sizes of a terminal.

use super::screens::{assert_screen, screen_text};
use super::{event, example_snapshot, member, message, press_keys, state};
use crate::team_snapshot_for_screen::{MemberItem, ScreenSnapshot};
use crate::ui_events_and_effects::Key;
use crate::ui_state::UiState;
use protocol::task::Task;
use std::sync::Arc;

/// Twelve members with the lead at the end of the list, sixteen tasks of which the last one has failed, and
/// forty messages.
fn busy_snapshot() -> ScreenSnapshot {
    let task = |n: u32| {
        let (subject, fields) = match n {
            16 => (
                "build it".to_owned(),
                r#""status":"in_progress","metadata":{"failure":"exit 2"}"#.to_owned(),
            ),
            1..=11 => (format!("read part {n}"), r#""status":"in_progress""#.to_owned()),
            _ => (format!("write chapter {n}"), format!(r#""status":"pending","blockedBy":["{}"]"#, n - 1)),
        };
        let owner = format!("worker-{}", n.min(11));
        Task::parse(&format!(r#"{{"id":"{n}","subject":"{subject}","owner":"{owner}",{fields}}}"#)).unwrap()
    };
    let tasks: Vec<Task> = (1..=16).map(task).collect();
    let worker = |n: u32| {
        let last_line = format!("page {n} of 200, and the words that are not in the index of the book");
        member(&format!("worker-{n}"), "", "active", &format!("#{n} the manual"), &last_line)
    };
    let lead = MemberItem { name: "team-lead".to_owned(), state: "lead".to_owned(), ..MemberItem::default() };
    let mut members: Vec<MemberItem> = (1..=11).map(worker).collect();
    members[10].task = String::new();
    members.push(MemberItem { unread: Some(3), ..lead });
    let message = |n: u64| message(n, "worker-3", "team-lead", &format!("page {n} of the manual is read"));
    ScreenSnapshot {
        members,
        tasks: Arc::new(crate::task_items_by_dependency::task_items(&tasks, &[])),
        messages: (10..50).map(message).collect(),
        events: (10..50).map(|n| event(&format!("14:{n}"), &format!("worker-3 has read page {n}"))).collect(),
        ..example_snapshot()
    }
}

/// The lines of the screen.
fn lines(state: &UiState) -> Vec<String> {
    screen_text(state).lines().map(str::to_owned).collect()
}

/// The column at which `part` begins in the first line with the text `line`.
fn column(state: &UiState, line: &str, part: &str) -> usize {
    let screen = screen_text(state);
    let line = screen.lines().find(|text| text.contains(line)).unwrap_or_else(|| panic!("{line}:\n{screen}"));
    line[..line.find(part).unwrap_or_else(|| panic!("{part}:\n{screen}"))].chars().count()
}

#[test]
fn busy_team_is_drawn_at_each_size() {
    for (width, height) in [(80, 24), (120, 40), (200, 50), (300, 80)] {
        assert_screen(&format!("busy-{width}x{height}"), &state(busy_snapshot(), (width, height)));
    }
}

#[test]
fn each_heading_is_above_its_column() {
    for size in [(80, 24), (120, 40), (200, 50)] {
        let state = state(busy_snapshot(), size);
        let cells = [
            ("[members", " state", ">worker-1", " active"),
            ("[members", " since", ">worker-1", " 14:05"),
            ("[members", " task", ">worker-1", " #1"),
            ("[members", " last line", ">worker-1", " page 1"),
            (" requests", " since", " bob ", " 14:07"),
            (" requests", " request ", " bob ", " asks"),
            (" tasks", " state", "read part 1", " working"),
            (" tasks", " owner", "read part 1", " worker-1"),
            (" tasks", " subject", "read part 1", " read part"),
        ];
        for (panel, heading, row, cell) in cells {
            let columns = [(panel, heading), (row, cell)].map(|(line, part)| column(&state, line, part));
            assert_eq!(columns[0], columns[1], "{size:?}: {heading}");
        }
    }
    let mut snapshot = busy_snapshot();
    snapshot.members[0].usage = "12.3k $0.42".to_owned();
    let state = state(snapshot, (120, 40));
    let columns = [("[members", " usage"), (">worker-1", " 12.3k")];
    let columns = columns.map(|(line, part)| column(&state, line, part));
    assert_eq!(columns[0], columns[1]);
}

#[test]
fn title_counts_the_items_out_of_sight() {
    let mut state = state(busy_snapshot(), (80, 24));
    let title =
        |state: &UiState, panel: &str| lines(state).into_iter().find(|line| line.contains(panel)).unwrap();
    assert!(title(&state, "[members 12]").ends_with(" 4 below ─"), "{}", screen_text(&state));
    assert!(title(&state, " messages 40 ").ends_with(" 36 above ─"), "{}", screen_text(&state));
    press_keys(&mut state, &[Key::Down; 9]);
    assert!(title(&state, "[members 12]").ends_with(" 2 above, 2 below ─"), "{}", screen_text(&state));
    press_keys(&mut state, &[Key::End]);
    assert!(title(&state, "[members 12]").ends_with(" 4 above ─"), "{}", screen_text(&state));
    assert!(!title(&state, " requests 1 ").contains("below"));
}

#[test]
fn summary_has_failed_tasks_and_unread_messages_of_the_lead() {
    let mut snapshot = busy_snapshot();
    let busy = state(snapshot.clone(), (80, 24));
    let summary = "survey  11 members active  1 request waits  1 task failed  lead: 3 unread";
    assert_eq!(lines(&busy)[0], summary);
    assert!(!screen_text(&busy).contains(" #16 ") && !screen_text(&busy).contains(" team-lead  "));
    (snapshot.tasks, snapshot.members[11].unread) = (Arc::default(), Some(0));
    assert_eq!(lines(&state(snapshot, (80, 24)))[0], "survey  11 members active  1 request waits");
}
