//! The checker is worth what it catches: a history in which all is well, and sixteen faults put into it.

use super::{CheckerRule, check};
use crate::checker_mutations::assert_all_caught;
use crate::history::{
    History, HistoryEvent, HistoryEventKind, InboxSnapshot, SnapshotMessage, TestMessageId,
};

fn id(sender: &str, seq: u64) -> TestMessageId {
    TestMessageId { sender: sender.to_owned(), seq }
}

/// Two senders and two inboxes: a/0, b/0, a/1 in ann's, of which the first is done; b/1 in bob's; b/2 was refused, and
/// of b/3 nobody knows.
fn valid_history() -> History {
    let ann = || "ann".to_owned();
    let deeds = [
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
    let seen = |id: TestMessageId, read: bool| SnapshotMessage { id, read, intact: true };
    let look = |at: u64, inbox: &str, messages: Vec<SnapshotMessage>| InboxSnapshot {
        at,
        inbox: inbox.to_owned(),
        messages,
    };
    History {
        events: deeds.map(|(at, what)| HistoryEvent { at, kind: what }).to_vec(),
        snapshots: vec![
            look(22, "ann", vec![seen(id("a", 0), false)]),
            look(39, "ann", vec![seen(id("a", 0), true)]),
            look(90, "ann", vec![seen(id("a", 0), true), seen(id("b", 0), false), seen(id("a", 1), false)]),
            look(91, "bob", vec![seen(id("b", 1), false)]),
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
    assert_eq!(broken_rules(&history), [CheckerRule::MembersMatchProcesses], "a ghost on the team");
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
        valid_history().events.into_iter().map(|deed| deed.kind).collect();
    let path = tempfile::NamedTempFile::new().unwrap();
    let mut diary = crate::history::HistoryFile::open(path.path()).unwrap();
    expected.iter().for_each(|what| diary.append(what).unwrap());
    let text = std::fs::read_to_string(path.path()).unwrap();
    let mut history = History::default();
    history.add_file(&text[..text.len() - 1]);
    expected.pop();
    assert_eq!(history.events.into_iter().map(|deed| deed.kind).collect::<Vec<_>>(), expected);
}
