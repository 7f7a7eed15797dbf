//! The journal: messages that other programs drop are restored once, at their place, unless the
//! owner has read them.

use crate::fixture::{TestRoot, agent, message, overwrite_in_place};
use protocol::message::Message;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Error, Inbox, InboxChange, InboxReconciler, ReaderKind};

/// The bytes of the inbox, as a foreign writer reads them.
fn text(env: &TestRoot) -> String {
    std::fs::read_to_string(env.inbox_path("bob.json")).unwrap_or_else(|_| "[]".to_owned())
}

fn write(env: &TestRoot, text: &str) {
    overwrite_in_place(&env.inbox_path("bob.json"), text);
}

fn bob(env: &TestRoot) -> Inbox {
    env.reopen_team().inbox(&agent("bob"))
}

fn send(env: &TestRoot, text: &str) {
    bob(env).append(&message(text)).unwrap();
}

fn unread_texts(env: &TestRoot) -> Vec<String> {
    bob(env).read().unwrap().into_iter().map(|entry| entry.message.unwrap().text).collect()
}

/// A reconciler that is used like in the daemon: after each change, it reads the journal and the
/// inbox.
#[derive(Default)]
struct TestReconciler {
    ledger: InboxReconciler,
}

impl TestReconciler {
    fn try_reconcile(&mut self, env: &TestRoot, reader: ReaderKind) -> Result<Vec<String>, Error> {
        self.ledger.read_journal(&env.team)?;
        let inbox = env.team.inbox(&agent("bob"));
        let put = self.ledger.reconcile(&inbox, InboxChange::Rewritten, reader)?;
        Ok(put.into_iter().map(|message| message.text).collect())
    }

    fn reconcile(&mut self, env: &TestRoot) -> Vec<String> {
        self.try_reconcile(env, ReaderKind::OwnDelivery).unwrap()
    }
}

#[test]
fn dropped_messages_are_restored_once_at_their_place() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    for text in ["a", "b", "c"] {
        send(&env, text);
    }
    let before = text(&env);
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    send(&env, "d");
    write(&env, &before.replace("\"b\"", "\"theirs\""));
    assert_eq!(reconciler.reconcile(&env), ["b", "d"]);
    // A message without a journal entry, of the same sender and time, counts as later.
    assert_eq!(unread_texts(&env), ["a", "b", "theirs", "c", "d"]);
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    assert_eq!(env.team.restored_counts().unwrap(), [("bob.json".to_owned(), 2)].into());
    write(&env, &before);
    assert_eq!(reconciler.reconcile(&env), [""; 0], "b is in the inbox, d is restored only once");
    assert_eq!(unread_texts(&env), ["a", "b", "c"]);
}

#[test]
fn messages_dropped_without_a_daemon_are_restored_later() {
    let env = TestRoot::new();
    send(&env, "a");
    write(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), ["a"]);
    // The restored messages are recorded too.
    write(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), [""; 0]);
    send(&env, "b");
    std::fs::remove_file(env.inbox_path("bob.json")).unwrap();
    assert_eq!(TestReconciler::default().reconcile(&env), ["b"]);
    assert_eq!(unread_texts(&env), ["b"]);
}

#[test]
fn read_messages_are_never_restored() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    for text in ["read", "taken before it was marked", "read by another program", "retired"] {
        send(&env, text);
    }
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    let entries = bob(&env).read().unwrap();
    bob(&env).mark_read(&entries[..1]).unwrap();
    // The message was delivered, and is gone before it is marked read.
    let left = text(&env).replace("\"taken before it was marked\"", "\"theirs\"");
    write(&env, &left);
    bob(&env).mark_read(&entries[1..2]).unwrap();
    let marked = text(&env).replacen("\"read\": false", "\"read\": true", 2);
    write(&env, &marked);
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    bob(&env).mark_all_read().unwrap();
    write(&env, "[]");
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    assert_eq!(TestReconciler::default().reconcile(&env), [""; 0]);
}

#[test]
fn a_reader_that_removes_messages_is_detected() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    let mut looks = |env: &TestRoot| reconciler.try_reconcile(env, ReaderKind::ForeignProgram).unwrap();
    for text in ["a", "b", "c"] {
        send(&env, text);
        assert_eq!(looks(&env), [""; 0]);
        write(&env, "[]");
        assert_eq!(looks(&env), [text], "the reader is not detected so far");
        write(&env, "[]");
        assert_eq!(looks(&env), [""; 0]);
    }
    for again in [false, true] {
        send(&env, "d");
        assert_eq!(looks(&env), [""; 0]);
        write(&env, "[]");
        assert_eq!(looks(&env), [""; 0], "the reader is detected");
        if !again {
            assert_eq!(
                TestReconciler::default().try_reconcile(&env, ReaderKind::ForeignProgram).unwrap(),
                [""; 0],
                "to all"
            );
        }
    }
}

#[test]
fn a_reader_that_records_reads_is_not_taken_for_one_that_removes_messages() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "had");
    bob(&env).mark_read(&bob(&env).read().unwrap()).unwrap();
    for text in ["a", "b", "c", "d", "e"] {
        send(&env, text);
        write(&env, "[]");
        assert_eq!(reconciler.try_reconcile(&env, ReaderKind::ForeignProgram).unwrap(), [text]);
        write(&env, "[]");
        assert_eq!(reconciler.try_reconcile(&env, ReaderKind::ForeignProgram).unwrap(), [""; 0]);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "this is the person with the backup")]
fn a_new_team_gets_no_messages_of_the_one_before() {
    let env = TestRoot::new();
    send(&env, "a");
    env.team.delete().unwrap();
    assert!(crate::fixture::list_dir(&env.path().join("journal")).is_empty());
    let team = env.root.create_team(&crate::fixture::config("orchard")).unwrap();
    team.inbox(&agent("bob")).append(&message("b")).unwrap();
    // A backup of the team's directory replaces it.
    let dir = env.inbox_path("");
    std::fs::rename(&dir, dir.with_file_name("moved")).unwrap();
    std::fs::create_dir(&dir).unwrap();
    let (again, mut ledger) = (env.reopen_team(), InboxReconciler::default());
    ledger.read_journal(&again).unwrap();
    assert_eq!(ledger.inboxes_with_unseen(), [""; 0]);
}

#[test]
fn a_directory_with_a_reused_inode_is_another_generation() {
    let env = TestRoot::new();
    let dir = env.inbox_path("");
    let number = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&dir).unwrap());
    send(&env, "a");
    let before = number();
    // Some file systems reuse the inode number for the next directory.
    for _ in 0..3 {
        crate::fixture::list_dir(&dir).iter().for_each(|file| std::fs::remove_file(file).unwrap());
        std::fs::remove_dir(&dir).unwrap();
        std::fs::create_dir(&dir).unwrap();
        let (again, mut ledger) = (env.reopen_team(), InboxReconciler::default());
        ledger.read_journal(&again).unwrap();
        assert_eq!(ledger.inboxes_with_unseen(), [""; 0], "{before} {}", number());
    }
}

#[test]
fn an_incomplete_journal_line_hides_no_other() {
    let env = TestRoot::new();
    send(&env, "a");
    let journal = env.path().join("journal/orchard.jsonl");
    let mut half = std::fs::read_to_string(&journal).unwrap();
    half.push_str("\n{\"inbox_file\":\"bob.js");
    overwrite_in_place(&journal, &half);
    send(&env, "b");
    write(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), ["a", "b"]);
}

#[test]
fn the_journal_stays_small_and_keeps_unread_messages() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "unread for long");
    let long = "x".repeat(16 << 10);
    for round in 0..60 {
        let message = Message { text: format!("{round} {long}"), ..message("") };
        bob(&env).append(&message).unwrap();
        let entries = bob(&env).read().unwrap();
        bob(&env).mark_read(&entries[1..]).unwrap();
        assert_eq!(reconciler.reconcile(&env), [""; 0]);
        write(
            &env,
            &serde_json::json!([serde_json::from_str::<serde_json::Value>(&entries[0].raw).unwrap()])
                .to_string(),
        );
    }
    let sizes = crate::fixture::list_dir(&env.path().join("journal")).into_iter();
    let size: u64 = sizes.map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!(size < 600 << 10, "{size} of more than 1 MiB");
    write(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), ["unread for long"]);
}

#[test]
fn lost_messages_are_searched_again_after_a_journal_error() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "a");
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    write(&env, "[]");
    let in_the_way = env.path().join("journal/orchard.jsonl.1");
    std::fs::create_dir(&in_the_way).unwrap();
    let settled = reconciler.ledger.reconcile(&bob(&env), InboxChange::Rewritten, ReaderKind::OwnDelivery);
    assert!(matches!(settled, Err(Error::UnexpectedFileType { .. })), "{settled:?}");
    std::fs::remove_dir(&in_the_way).unwrap();
    assert_eq!(reconciler.ledger.inboxes_with_unseen(), ["bob.json"]);
    assert_eq!(
        reconciler
            .ledger
            .reconcile(&bob(&env), InboxChange::Appended(&[]), ReaderKind::OwnDelivery)
            .unwrap()
            .len(),
        1
    );
}

/// Fills the journal with messages to many inboxes, while no daemon reads it.
fn fill(env: &TestRoot, round: &str) {
    let long = message(&"x".repeat(200 << 10));
    for n in 0..45 {
        env.reopen_team().inbox(&agent(&format!("{round}{n}"))).append(&long).unwrap();
    }
}

#[test]
fn a_full_journal_is_rotated() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    for round in ["a", "b"] {
        fill(&env, round);
        assert_eq!(reconciler.reconcile(&env), [""; 0]);
    }
    let long = "y".repeat(200 << 10);
    send(&env, &long);
    write(&env, "[]");
    assert_eq!(reconciler.reconcile(&env), [long], "its journal entry had space");
    // The messages of the first round are no longer in the journal. The reconciler finds that once.
    let first = env.team.inbox(&agent("a0"));
    overwrite_in_place(&first.path(), "[]");
    let journal = env.path().join("journal/orchard.jsonl");
    let size = || std::fs::metadata(&journal).unwrap().len();
    let before = size();
    for _ in 0..2 {
        assert_eq!(
            reconciler.ledger.reconcile(&first, InboxChange::Rewritten, ReaderKind::OwnDelivery).unwrap(),
            []
        );
    }
    assert_eq!(size(), before);
    assert!(!reconciler.ledger.inboxes_with_unseen().contains(&"a0.json".to_owned()));
}

#[test]
fn a_journal_over_its_size_limit_is_read() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "a");
    let journal = env.path().join("journal/orchard.jsonl");
    let notes = std::fs::read_to_string(&journal).unwrap();
    overwrite_in_place(&journal, notes + &"\n".repeat(9 << 20));
    write(&env, "[]");
    for _ in 0..2 {
        reconciler.ledger.read_journal(&env.team).unwrap();
    }
    assert_eq!(reconciler.reconcile(&env), ["a"]);
    assert_eq!(env.team.restored_counts().unwrap(), [("bob.json".to_owned(), 1)].into());
}

#[test]
fn messages_to_session_teams_are_not_recorded() {
    let env = TestRoot::new();
    let dir = env.path().join("root/teams/session-1");
    std::fs::create_dir_all(&dir).unwrap();
    overwrite_in_place(&dir.join("config.json"), crate::fixture::config("session-1").to_text());
    let team = env.root.team(&protocol::name::TeamName::parse("session-1").unwrap()).unwrap();
    team.inbox(&agent("bob")).append(&message("a")).unwrap();
    assert!(!env.path().join("journal").exists());
}

/// A foreign writer that takes the lock and drops each message when it reads it for the first time.
fn drops_each_once(env: &TestRoot, dropped: &mut BTreeSet<String>) {
    let lock = env.inbox_path("bob.json.lock");
    if std::fs::create_dir(&lock).is_err() {
        return;
    }
    let mut letters: Vec<serde_json::Value> = serde_json::from_str(&text(env)).unwrap();
    let before = letters.len();
    letters.retain(|letter| !dropped.insert(letter["text"].as_str().unwrap().to_owned()));
    if letters.len() < before {
        write(env, &serde_json::to_string_pretty(&letters).unwrap());
    }
    std::fs::remove_dir(&lock).unwrap();
}

#[test]
fn all_messages_are_restored_once_and_in_order_next_to_a_dropping_writer() {
    const SENDERS: usize = 4;
    const MESSAGES_EACH: usize = 50;
    let (env, is_done) = (TestRoot::new(), AtomicUsize::new(0));
    let (mut reconciler, mut dropped) = (TestReconciler::default(), BTreeSet::new());
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (env, is_done) = (&env, &is_done);
            scope.spawn(move || {
                for n in 0..MESSAGES_EACH {
                    let text = format!("{sender}/{n}");
                    let message = Message { from: format!("s{sender}"), ..message(&text) };
                    bob(env).append(&message).unwrap();
                }
                is_done.fetch_add(1, Ordering::Relaxed);
            });
        }
        while is_done.load(Ordering::Relaxed) < SENDERS || dropped.len() < SENDERS * MESSAGES_EACH {
            drops_each_once(&env, &mut dropped);
            reconciler.reconcile(&env);
        }
    });
    reconciler.reconcile(&env);
    for sender in 0..SENDERS {
        let hers = unread_texts(&env).into_iter().filter(|text| text.starts_with(&format!("{sender}/")));
        assert_eq!(
            hers.collect::<Vec<_>>(),
            (0..MESSAGES_EACH).map(|n| format!("{sender}/{n}")).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_late_record_keeps_the_order_of_its_sender() {
    let (env, from) =
        (TestRoot::new(), |who: &str, text: &str| Message { from: who.into(), ..message(text) });
    bob(&env).append(&from("b", "b1")).unwrap();
    let journal = env.path().join("journal/orchard.jsonl");
    let late = std::fs::read_to_string(&journal).unwrap();
    overwrite_in_place(&journal, "");
    for text in ["a1", "a2"] {
        bob(&env).append(&from("a", text)).unwrap();
    }
    overwrite_in_place(&journal, std::fs::read_to_string(&journal).unwrap() + &late);
    let letters: Vec<serde_json::Value> = serde_json::from_str(&text(&env)).unwrap();
    write(&env, &serde_json::json!(letters[..2]).to_string());
    assert_eq!(TestReconciler::default().reconcile(&env), ["a2"]);
    assert_eq!(unread_texts(&env), ["b1", "a1", "a2"]);
}
