//! What others drop from an inbox comes back: once, where it was, and nothing that its owner has had.

use crate::fixture::{TestRoot, agent, message, overwrite_in_place};
use protocol::message::Message;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Error, Inbox, InboxChange, InboxReconciler, ReaderKind};

/// A foreign writer's view: the file's bytes, and what it writes back.
fn text(ground: &TestRoot) -> String {
    std::fs::read_to_string(ground.inbox_path("bob.json")).unwrap_or_else(|_| "[]".to_owned())
}

fn write(ground: &TestRoot, text: &str) {
    overwrite_in_place(&ground.inbox_path("bob.json"), text);
}

fn bob(ground: &TestRoot) -> Inbox {
    ground.reopen_team().inbox(&agent("bob"))
}

fn send(ground: &TestRoot, text: &str) {
    bob(ground).append(&message(text)).unwrap();
}

fn unread_texts(ground: &TestRoot) -> Vec<String> {
    bob(ground).read().unwrap().into_iter().map(|entry| entry.message.unwrap().text).collect()
}

/// What the daemon does at each look.
#[derive(Default)]
struct TestReconciler {
    ledger: InboxReconciler,
}

impl TestReconciler {
    fn try_reconcile(&mut self, ground: &TestRoot, reader: ReaderKind) -> Result<Vec<String>, Error> {
        self.ledger.read_journal(&ground.team)?;
        let inbox = ground.team.inbox(&agent("bob"));
        let put = self.ledger.reconcile(&inbox, InboxChange::Rewritten, reader)?;
        Ok(put.into_iter().map(|message| message.text).collect())
    }

    fn reconcile(&mut self, ground: &TestRoot) -> Vec<String> {
        self.try_reconcile(ground, ReaderKind::OwnDelivery).unwrap()
    }
}

#[test]
fn what_a_writer_dropped_comes_back_where_it_was_and_once() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    for text in ["a", "b", "c"] {
        send(&ground, text);
    }
    let before = text(&ground);
    assert_eq!(keeper.reconcile(&ground), [""; 0]);
    send(&ground, "d");
    write(&ground, &before.replace("\"b\"", "\"theirs\""));
    assert_eq!(keeper.reconcile(&ground), ["b", "d"]);
    // What nobody noted, of the same sender and moment, counts as later.
    assert_eq!(unread_texts(&ground), ["a", "b", "theirs", "c", "d"]);
    assert_eq!(keeper.reconcile(&ground), [""; 0]);
    assert_eq!(ground.team.restored_counts().unwrap(), [("bob.json".to_owned(), 2)].into());
    write(&ground, &before);
    assert_eq!(keeper.reconcile(&ground), [""; 0], "b is there, d has had its chance");
    assert_eq!(unread_texts(&ground), ["a", "b", "c"]);
}

#[test]
fn what_was_dropped_while_nobody_looked_comes_back_by_whoever_looks_next() {
    let ground = TestRoot::new();
    send(&ground, "a");
    write(&ground, "[]");
    assert_eq!(TestReconciler::default().reconcile(&ground), ["a"]);
    // What was put back is remembered too.
    write(&ground, "[]");
    assert_eq!(TestReconciler::default().reconcile(&ground), [""; 0]);
    send(&ground, "b");
    std::fs::remove_file(ground.inbox_path("bob.json")).unwrap();
    assert_eq!(TestReconciler::default().reconcile(&ground), ["b"]);
    assert_eq!(unread_texts(&ground), ["b"]);
}

#[test]
fn what_its_owner_has_had_never_comes_back() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    for text in ["read", "taken before it was marked", "read by another program", "retired"] {
        send(&ground, text);
    }
    assert_eq!(keeper.reconcile(&ground), [""; 0]);
    let entries = bob(&ground).read().unwrap();
    bob(&ground).mark_read(&entries[..1]).unwrap();
    // It was handed over; by the time it is marked it is gone.
    let left = text(&ground).replace("\"taken before it was marked\"", "\"theirs\"");
    write(&ground, &left);
    bob(&ground).mark_read(&entries[1..2]).unwrap();
    let marked = text(&ground).replacen("\"read\": false", "\"read\": true", 2);
    write(&ground, &marked);
    assert_eq!(keeper.reconcile(&ground), [""; 0]);
    bob(&ground).mark_all_read().unwrap();
    write(&ground, "[]");
    assert_eq!(keeper.reconcile(&ground), [""; 0]);
    assert_eq!(TestReconciler::default().reconcile(&ground), [""; 0]);
}

#[test]
fn a_reader_that_takes_out_what_it_has_had_gets_nothing_twice_for_long() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    let mut looks = |ground: &TestRoot| keeper.try_reconcile(ground, ReaderKind::ForeignProgram).unwrap();
    for text in ["a", "b", "c"] {
        send(&ground, text);
        assert_eq!(looks(&ground), [""; 0]);
        write(&ground, "[]");
        assert_eq!(looks(&ground), [text], "nobody could know");
        write(&ground, "[]");
        assert_eq!(looks(&ground), [""; 0]);
    }
    for again in [false, true] {
        send(&ground, "d");
        assert_eq!(looks(&ground), [""; 0]);
        write(&ground, "[]");
        assert_eq!(looks(&ground), [""; 0], "now it is known");
        if !again {
            assert_eq!(
                TestReconciler::default().try_reconcile(&ground, ReaderKind::ForeignProgram).unwrap(),
                [""; 0],
                "to all"
            );
        }
    }
}

#[test]
fn a_reader_that_notes_what_it_has_had_is_none_of_those() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    send(&ground, "had");
    bob(&ground).mark_read(&bob(&ground).read().unwrap()).unwrap();
    for text in ["a", "b", "c", "d", "e"] {
        send(&ground, text);
        write(&ground, "[]");
        assert_eq!(keeper.try_reconcile(&ground, ReaderKind::ForeignProgram).unwrap(), [text]);
        write(&ground, "[]");
        assert_eq!(keeper.try_reconcile(&ground, ReaderKind::ForeignProgram).unwrap(), [""; 0]);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the person with the backup")]
fn a_team_that_was_made_anew_or_restored_gets_nothing_of_the_one_before() {
    let ground = TestRoot::new();
    send(&ground, "a");
    ground.team.delete().unwrap();
    assert!(crate::fixture::list_dir(&ground.path().join("journal")).is_empty());
    let team = ground.root.create_team(&crate::fixture::config("orchard")).unwrap();
    team.inbox(&agent("bob")).append(&message("b")).unwrap();
    // A backup of its directory comes in its place.
    let dir = ground.inbox_path("");
    std::fs::rename(&dir, dir.with_file_name("moved")).unwrap();
    std::fs::create_dir(&dir).unwrap();
    let (again, mut ledger) = (ground.reopen_team(), InboxReconciler::default());
    ledger.read_journal(&again).unwrap();
    assert_eq!(ledger.inboxes_with_unseen(), [""; 0]);
}

#[test]
fn a_directory_with_the_number_of_an_earlier_one_is_another() {
    let ground = TestRoot::new();
    let dir = ground.inbox_path("");
    let number = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&dir).unwrap());
    send(&ground, "a");
    let before = number();
    // Some file systems give it to the next that is made.
    for _ in 0..3 {
        crate::fixture::list_dir(&dir).iter().for_each(|file| std::fs::remove_file(file).unwrap());
        std::fs::remove_dir(&dir).unwrap();
        std::fs::create_dir(&dir).unwrap();
        let (again, mut ledger) = (ground.reopen_team(), InboxReconciler::default());
        ledger.read_journal(&again).unwrap();
        assert_eq!(ledger.inboxes_with_unseen(), [""; 0], "{before} {}", number());
    }
}

#[test]
fn half_a_line_hides_no_other() {
    let ground = TestRoot::new();
    send(&ground, "a");
    let journal = ground.path().join("journal/orchard.jsonl");
    let mut half = std::fs::read_to_string(&journal).unwrap();
    half.push_str("\n{\"to\":\"bob.js");
    overwrite_in_place(&journal, &half);
    send(&ground, "b");
    write(&ground, "[]");
    assert_eq!(TestReconciler::default().reconcile(&ground), ["a", "b"]);
}

#[test]
fn the_journal_stays_small_and_keeps_what_is_open() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    send(&ground, "unread for long");
    let long = "x".repeat(16 << 10);
    for round in 0..60 {
        let message = Message { text: format!("{round} {long}"), ..message("") };
        bob(&ground).append(&message).unwrap();
        let entries = bob(&ground).read().unwrap();
        bob(&ground).mark_read(&entries[1..]).unwrap();
        assert_eq!(keeper.reconcile(&ground), [""; 0]);
        write(
            &ground,
            &serde_json::json!([serde_json::from_str::<serde_json::Value>(&entries[0].raw).unwrap()])
                .to_string(),
        );
    }
    let sizes = crate::fixture::list_dir(&ground.path().join("journal")).into_iter();
    let size: u64 = sizes.map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!(size < 600 << 10, "{size} of more than 1 MiB");
    write(&ground, "[]");
    assert_eq!(TestReconciler::default().reconcile(&ground), ["unread for long"]);
}

#[test]
fn what_is_gone_while_the_journal_can_not_be_read_is_looked_for_again() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    send(&ground, "a");
    assert_eq!(keeper.reconcile(&ground), [""; 0]);
    write(&ground, "[]");
    let in_the_way = ground.path().join("journal/orchard.jsonl.1");
    std::fs::create_dir(&in_the_way).unwrap();
    let settled = keeper.ledger.reconcile(&bob(&ground), InboxChange::Rewritten, ReaderKind::OwnDelivery);
    assert!(matches!(settled, Err(Error::UnexpectedFileType { .. })), "{settled:?}");
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(keeper.ledger.inboxes_with_unseen(), ["bob.json"]);
    assert_eq!(
        keeper
            .ledger
            .reconcile(&bob(&ground), InboxChange::Appended(&[]), ReaderKind::OwnDelivery)
            .unwrap()
            .len(),
        1
    );
}

/// As much as is noted while nobody looks, and more, each to somebody else.
fn fill(ground: &TestRoot, round: &str) {
    let long = message(&"x".repeat(200 << 10));
    for n in 0..45 {
        ground.reopen_team().inbox(&agent(&format!("{round}{n}"))).append(&long).unwrap();
    }
}

#[test]
fn a_journal_that_was_full_is_begun_anew_each_time() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    for round in ["a", "b"] {
        fill(&ground, round);
        assert_eq!(keeper.reconcile(&ground), [""; 0]);
    }
    let long = "y".repeat(200 << 10);
    send(&ground, &long);
    write(&ground, "[]");
    assert_eq!(keeper.reconcile(&ground), [long], "there was room for its note");
    // Of the first round nothing is known any more, and that is found once.
    let first = ground.team.inbox(&agent("a0"));
    overwrite_in_place(&first.path(), "[]");
    let journal = ground.path().join("journal/orchard.jsonl");
    let size = || std::fs::metadata(&journal).unwrap().len();
    let before = size();
    for _ in 0..2 {
        assert_eq!(
            keeper.ledger.reconcile(&first, InboxChange::Rewritten, ReaderKind::OwnDelivery).unwrap(),
            []
        );
    }
    assert_eq!(size(), before);
    assert!(!keeper.ledger.inboxes_with_unseen().contains(&"a0.json".to_owned()));
}

#[test]
fn a_journal_beyond_its_size_is_read_all_the_same() {
    let (ground, mut keeper) = (TestRoot::new(), TestReconciler::default());
    send(&ground, "a");
    let journal = ground.path().join("journal/orchard.jsonl");
    let notes = std::fs::read_to_string(&journal).unwrap();
    overwrite_in_place(&journal, notes + &"\n".repeat(9 << 20));
    write(&ground, "[]");
    for _ in 0..2 {
        keeper.ledger.read_journal(&ground.team).unwrap();
    }
    assert_eq!(keeper.reconcile(&ground), ["a"]);
    assert_eq!(ground.team.restored_counts().unwrap(), [("bob.json".to_owned(), 1)].into());
}

#[test]
fn a_session_of_another_program_is_not_noted() {
    let ground = TestRoot::new();
    let dir = ground.path().join("root/teams/session-1");
    std::fs::create_dir_all(&dir).unwrap();
    overwrite_in_place(&dir.join("config.json"), crate::fixture::config("session-1").to_text());
    let team = ground.root.team(&protocol::name::TeamName::parse("session-1").unwrap()).unwrap();
    team.inbox(&agent("bob")).append(&message("a")).unwrap();
    assert!(!ground.path().join("journal").exists());
}

/// Takes the lock, as some of them do, and writes back without each message that it meets the first time.
fn drops_each_once(ground: &TestRoot, dropped: &mut BTreeSet<String>) {
    let lock = ground.inbox_path("bob.json.lock");
    if std::fs::create_dir(&lock).is_err() {
        return;
    }
    let mut letters: Vec<serde_json::Value> = serde_json::from_str(&text(ground)).unwrap();
    let before = letters.len();
    letters.retain(|letter| !dropped.insert(letter["text"].as_str().unwrap().to_owned()));
    if letters.len() < before {
        write(ground, &serde_json::to_string_pretty(&letters).unwrap());
    }
    std::fs::remove_dir(&lock).unwrap();
}

#[test]
fn of_many_senders_all_is_there_once_and_in_order_beside_one_who_drops_everything_once() {
    const SENDERS: usize = 4;
    const MESSAGES_EACH: usize = 50;
    let (ground, over) = (TestRoot::new(), AtomicUsize::new(0));
    let (mut keeper, mut dropped) = (TestReconciler::default(), BTreeSet::new());
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (ground, over) = (&ground, &over);
            scope.spawn(move || {
                for n in 0..MESSAGES_EACH {
                    let text = format!("{sender}/{n}");
                    let message = Message { from: format!("s{sender}"), ..message(&text) };
                    bob(ground).append(&message).unwrap();
                }
                over.fetch_add(1, Ordering::Relaxed);
            });
        }
        while over.load(Ordering::Relaxed) < SENDERS || dropped.len() < SENDERS * MESSAGES_EACH {
            drops_each_once(&ground, &mut dropped);
            keeper.reconcile(&ground);
        }
    });
    keeper.reconcile(&ground);
    for sender in 0..SENDERS {
        let hers = unread_texts(&ground).into_iter().filter(|text| text.starts_with(&format!("{sender}/")));
        assert_eq!(
            hers.collect::<Vec<_>>(),
            (0..MESSAGES_EACH).map(|n| format!("{sender}/{n}")).collect::<Vec<_>>()
        );
    }
}

#[test]
fn what_was_noted_late_does_not_stand_before_what_its_sender_sent_earlier() {
    let (ground, from) =
        (TestRoot::new(), |who: &str, text: &str| Message { from: who.into(), ..message(text) });
    bob(&ground).append(&from("b", "b1")).unwrap();
    let journal = ground.path().join("journal/orchard.jsonl");
    let late = std::fs::read_to_string(&journal).unwrap();
    overwrite_in_place(&journal, "");
    for text in ["a1", "a2"] {
        bob(&ground).append(&from("a", text)).unwrap();
    }
    overwrite_in_place(&journal, std::fs::read_to_string(&journal).unwrap() + &late);
    let letters: Vec<serde_json::Value> = serde_json::from_str(&text(&ground)).unwrap();
    write(&ground, &serde_json::json!(letters[..2]).to_string());
    assert_eq!(TestReconciler::default().reconcile(&ground), ["a2"]);
    assert_eq!(unread_texts(&ground), ["b1", "a1", "a2"]);
}
