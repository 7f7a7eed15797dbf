//! Checks that the checker accepts a valid history and detects every mutation of it. Also checks
//! the format of messages and history files.

use super::{CheckerRule, check};
use crate::checker_mutations::assert_all_caught;
use crate::history::{
    History, HistoryEvent, HistoryEventKind, InboxSnapshot, SnapshotMessage, TestMessageId,
};

fn id(sender: &str, seq: u64) -> TestMessageId {
    TestMessageId { sender: sender.to_owned(), seq }
}

/// A history without violations, with the senders a and b and the recipients ann and bob. Ann's
/// inbox has a/0, which she has processed, b/0 and a/1. Bob's inbox has b/1. The send of b/2 was
/// refused, and the result of the send of b/3 is unknown.
fn valid_history() -> History {
    let ann = || "ann".to_owned();
    let events = [
        (10, HistoryEventKind::SendStarted { id: id("a", 0), to: ann() }),
        (20, HistoryEventKind::Stored { id: id("a", 0) }),
        (25, HistoryEventKind::SendStarted { id: id("b", 0), to: ann() }),
        (30, HistoryEventKind::SendStarted { id: id("a", 1), to: ann() }),
        (35, HistoryEventKind::Delivered { id: id("a", 0), by: ann() }),
        (36, HistoryEventKind::Killed { by: ann() }),
        (37, HistoryEventKind::Delivered { id: id("a", 0), by: ann() }),
        (38, HistoryEventKind::Processed { id: id("a", 0), by: ann() }),
        (40, HistoryEventKind::Stored { id: id("b", 0) }),
        (45, HistoryEventKind::Stored { id: id("a", 1) }),
        (50, HistoryEventKind::SendStarted { id: id("b", 1), to: "bob".to_owned() }),
        (55, HistoryEventKind::Stored { id: id("b", 1) }),
        (60, HistoryEventKind::SendStarted { id: id("b", 2), to: "bob".to_owned() }),
        (65, HistoryEventKind::Refused { id: id("b", 2) }),
        (70, HistoryEventKind::SendStarted { id: id("b", 3), to: "bob".to_owned() }),
        (80, HistoryEventKind::Claimed { task: 1, round: 0, by: ann() }),
        (81, HistoryEventKind::Claimed { task: 2, round: 0, by: "bob".to_owned() }),
        (82, HistoryEventKind::Claimed { task: 1, round: 1, by: "bob".to_owned() }),
    ];
    let message = |id: TestMessageId, read: bool| SnapshotMessage { id, read, intact: true };
    let snapshot = |at: u64, inbox: &str, messages: Vec<SnapshotMessage>| InboxSnapshot {
        at,
        inbox: inbox.to_owned(),
        messages,
    };
    History {
        events: events.map(|(at, kind)| HistoryEvent { at, kind }).to_vec(),
        snapshots: vec![
            snapshot(22, "ann", vec![message(id("a", 0), false)]),
            snapshot(39, "ann", vec![message(id("a", 0), true)]),
            snapshot(
                90,
                "ann",
                vec![message(id("a", 0), true), message(id("b", 0), false), message(id("a", 1), false)],
            ),
            snapshot(91, "bob", vec![message(id("b", 1), false)]),
        ],
        members: vec![ann(), "bob".to_owned()],
        running: vec!["bob".to_owned(), ann()],
    }
}

fn broken_rules(history: &History) -> Vec<CheckerRule> {
    let mut rules: Vec<CheckerRule> = check(history).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn valid_history_passes() {
    assert_eq!(check(&valid_history()), []);
}

#[test]
fn every_mutation_is_caught() {
    assert_eq!(assert_all_caught(&valid_history()), 16);
    let mut history = valid_history();
    history.members.push("eve".into());
    assert_eq!(broken_rules(&history), [CheckerRule::MembersMatchProcesses], "a member without a process");
}

#[test]
fn message_text_has_id_and_checksum() {
    let text = id("a", 7).message_text("so/it \u{2028} is");
    assert_eq!(TestMessageId::parse_text(&text), Some((id("a", 7), true)));
    assert_eq!(TestMessageId::parse_text(&text.replace("is", "was")), Some((id("a", 7), false)));
    assert_eq!(TestMessageId::parse_text("hello"), None);
}

#[test]
fn history_file_roundtrips_and_ignores_partial_lines() {
    let mut expected: Vec<HistoryEventKind> =
        valid_history().events.into_iter().map(|event| event.kind).collect();
    let path = tempfile::NamedTempFile::new().unwrap();
    let mut file = crate::history::HistoryFile::open(path.path()).unwrap();
    expected.iter().for_each(|kind| file.append(kind).unwrap());
    let text = std::fs::read_to_string(path.path()).unwrap();
    let mut history = History::default();
    history.add_file(&text[..text.len() - 1]);
    expected.pop();
    assert_eq!(history.events.into_iter().map(|event| event.kind).collect::<Vec<_>>(), expected);
}
