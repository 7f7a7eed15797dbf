//! The journal: messages that other programs drop from an inbox are restored once, at their earlier
//! position, unless the owner has read them.

use crate::test_root::{TestRoot, agent, message, overwrite_in_place};
use protocol::inbox_file::Message;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use store::{Error, Inbox, InboxChange, InboxReconciler, ReaderKind};

/// The text of bob's inbox, as a foreign writer reads it.
fn inbox_text(env: &TestRoot) -> String {
    std::fs::read_to_string(env.inbox_path("bob.json")).unwrap_or_else(|_| "[]".to_owned())
}

/// Overwrites bob's inbox, like a foreign writer.
fn write_inbox(env: &TestRoot, text: &str) {
    overwrite_in_place(&env.inbox_path("bob.json"), text);
}

fn bob_inbox(env: &TestRoot) -> Inbox {
    env.reopen_team().inbox(&agent("bob"))
}

fn send(env: &TestRoot, text: &str) {
    bob_inbox(env).append(&message(text)).unwrap();
}

fn unread_texts(env: &TestRoot) -> Vec<String> {
    bob_inbox(env).read().unwrap().into_iter().map(|entry| entry.message.unwrap().text).collect()
}

/// A reconciler with the daemon's order of calls: after each change, it reads the journal and then
/// the inbox.
#[derive(Default)]
struct TestReconciler {
    inner: InboxReconciler,
}

impl TestReconciler {
    fn try_reconcile(&mut self, env: &TestRoot, reader: ReaderKind) -> Result<Vec<String>, Error> {
        self.inner.read_journal(&env.team)?;
        let inbox = env.team.inbox(&agent("bob"));
        let messages = self.inner.reconcile(&inbox, InboxChange::Rewritten, reader)?;
        Ok(messages.into_iter().map(|message| message.text).collect())
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
    let before = inbox_text(&env);
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    send(&env, "d");
    write_inbox(&env, &before.replace("\"b\"", "\"theirs\""));
    assert_eq!(reconciler.reconcile(&env), ["b", "d"]);
    // A message without a journal entry, of the same sender and time, counts as later.
    assert_eq!(unread_texts(&env), ["a", "b", "theirs", "c", "d"]);
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    assert_eq!(env.team.restored_counts().unwrap(), [("bob.json".to_owned(), 2)].into());
    write_inbox(&env, &before);
    assert_eq!(reconciler.reconcile(&env), [""; 0], "b is in the inbox, d is restored only once");
    assert_eq!(unread_texts(&env), ["a", "b", "c"]);
}

#[test]
fn messages_dropped_without_a_daemon_are_restored_later() {
    let env = TestRoot::new();
    send(&env, "a");
    write_inbox(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), ["a"]);
    // The restored messages are recorded too.
    write_inbox(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), [""; 0]);
    send(&env, "b");
    std::fs::remove_file(env.inbox_path("bob.json")).unwrap();
    assert_eq!(TestReconciler::default().reconcile(&env), ["b"]);
    assert_eq!(unread_texts(&env), ["b"]);
}

#[test]
fn read_messages_are_never_restored() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    for text in ["read", "removed before it was marked", "read by another program", "marked last"] {
        send(&env, text);
    }
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    let entries = bob_inbox(&env).read().unwrap();
    bob_inbox(&env).mark_read(&entries[..1]).unwrap();
    // Another program removes a delivered message before the message is marked read.
    let rewritten = inbox_text(&env).replace("\"removed before it was marked\"", "\"theirs\"");
    write_inbox(&env, &rewritten);
    bob_inbox(&env).mark_read(&entries[1..2]).unwrap();
    let rewritten = inbox_text(&env).replacen("\"read\": false", "\"read\": true", 2);
    write_inbox(&env, &rewritten);
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    bob_inbox(&env).mark_all_read().unwrap();
    write_inbox(&env, "[]");
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    assert_eq!(TestReconciler::default().reconcile(&env), [""; 0]);
}

#[test]
fn a_reader_that_removes_messages_is_detected() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    let mut reconcile = |env: &TestRoot| reconciler.try_reconcile(env, ReaderKind::ForeignProgram).unwrap();
    for text in ["a", "b", "c"] {
        send(&env, text);
        assert_eq!(reconcile(&env), [""; 0]);
        write_inbox(&env, "[]");
        assert_eq!(reconcile(&env), [text], "the reader is not detected yet");
        write_inbox(&env, "[]");
        assert_eq!(reconcile(&env), [""; 0]);
    }
    for round in 0..2 {
        send(&env, "d");
        assert_eq!(reconcile(&env), [""; 0]);
        write_inbox(&env, "[]");
        assert_eq!(reconcile(&env), [""; 0], "the reader is detected");
        if round == 0 {
            assert_eq!(
                TestReconciler::default().try_reconcile(&env, ReaderKind::ForeignProgram).unwrap(),
                [""; 0],
                "a new reconciler finds the detection in the journal"
            );
        }
    }
}

#[test]
fn a_reader_that_records_reads_is_not_taken_for_one_that_removes_messages() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "read");
    bob_inbox(&env).mark_read(&bob_inbox(&env).read().unwrap()).unwrap();
    for text in ["a", "b", "c", "d", "e"] {
        send(&env, text);
        write_inbox(&env, "[]");
        assert_eq!(reconciler.try_reconcile(&env, ReaderKind::ForeignProgram).unwrap(), [text]);
        write_inbox(&env, "[]");
        assert_eq!(reconciler.try_reconcile(&env, ReaderKind::ForeignProgram).unwrap(), [""; 0]);
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test restores a backup like a person")]
fn a_new_team_gets_no_messages_of_a_deleted_team() {
    let env = TestRoot::new();
    send(&env, "a");
    env.team.delete().unwrap();
    assert!(crate::test_root::list_dir(&env.path().join("journal")).is_empty());
    let team = env.root.create_team(&crate::test_root::config("orchard")).unwrap();
    team.inbox(&agent("bob")).append(&message("b")).unwrap();
    // A person replaces the directory of the inboxes, to restore a backup.
    let dir = env.inbox_path("");
    std::fs::rename(&dir, dir.with_file_name("moved")).unwrap();
    std::fs::create_dir(&dir).unwrap();
    let (team, mut reconciler) = (env.reopen_team(), InboxReconciler::default());
    reconciler.read_journal(&team).unwrap();
    assert_eq!(reconciler.inboxes_with_unseen(), [""; 0]);
}

#[test]
fn a_directory_with_a_reused_inode_is_another_generation() {
    let env = TestRoot::new();
    let dir = env.inbox_path("");
    let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&dir).unwrap());
    send(&env, "a");
    let before = inode();
    // Some file systems reuse the inode number for the next directory.
    for _ in 0..3 {
        crate::test_root::list_dir(&dir).iter().for_each(|file| std::fs::remove_file(file).unwrap());
        std::fs::remove_dir(&dir).unwrap();
        std::fs::create_dir(&dir).unwrap();
        let (team, mut reconciler) = (env.reopen_team(), InboxReconciler::default());
        reconciler.read_journal(&team).unwrap();
        assert_eq!(reconciler.inboxes_with_unseen(), [""; 0], "inode {before}, then {}", inode());
    }
}

#[test]
fn an_incomplete_journal_line_hides_no_other() {
    let env = TestRoot::new();
    send(&env, "a");
    let journal = env.path().join("journal/orchard.jsonl");
    let mut text = std::fs::read_to_string(&journal).unwrap();
    text.push_str("\n{\"inbox_file\":\"bob.js");
    overwrite_in_place(&journal, &text);
    send(&env, "b");
    write_inbox(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), ["a", "b"]);
}

#[test]
fn the_journal_stays_small_and_keeps_unread_messages() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "unread for long");
    let long = "x".repeat(16 << 10);
    for round in 0..60 {
        let message = Message { text: format!("{round} {long}"), ..message("") };
        bob_inbox(&env).append(&message).unwrap();
        let entries = bob_inbox(&env).read().unwrap();
        bob_inbox(&env).mark_read(&entries[1..]).unwrap();
        assert_eq!(reconciler.reconcile(&env), [""; 0]);
        write_inbox(
            &env,
            &serde_json::json!([serde_json::from_str::<serde_json::Value>(&entries[0].raw).unwrap()])
                .to_string(),
        );
    }
    let sizes = crate::test_root::list_dir(&env.path().join("journal")).into_iter();
    let size: u64 = sizes.map(|file| std::fs::metadata(file).unwrap().len()).sum();
    assert!(size < 600 << 10, "the journal files have {size} bytes");
    write_inbox(&env, "[]");
    assert_eq!(TestReconciler::default().reconcile(&env), ["unread for long"]);
}

#[test]
fn lost_messages_are_searched_again_after_a_journal_error() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "a");
    assert_eq!(reconciler.reconcile(&env), [""; 0]);
    write_inbox(&env, "[]");
    let obstacle = env.path().join("journal/orchard.jsonl.1");
    std::fs::create_dir(&obstacle).unwrap();
    let result =
        reconciler.inner.reconcile(&bob_inbox(&env), InboxChange::Rewritten, ReaderKind::OwnDelivery);
    assert!(matches!(result, Err(Error::UnexpectedFileType { .. })), "{result:?}");
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(reconciler.inner.inboxes_with_unseen(), ["bob.json"]);
    assert_eq!(
        reconciler
            .inner
            .reconcile(&bob_inbox(&env), InboxChange::Appended(&[]), ReaderKind::OwnDelivery)
            .unwrap()
            .len(),
        1
    );
}

/// Fills the journal with messages to many inboxes. No reconciler reads the journal meanwhile.
fn fill_journal(env: &TestRoot, round: &str) {
    let long = message(&"x".repeat(200 << 10));
    for n in 0..45 {
        env.reopen_team().inbox(&agent(&format!("{round}{n}"))).append(&long).unwrap();
    }
}

#[test]
fn a_full_journal_is_rotated() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    for round in ["a", "b"] {
        fill_journal(&env, round);
        assert_eq!(reconciler.reconcile(&env), [""; 0]);
    }
    let long = "y".repeat(200 << 10);
    send(&env, &long);
    write_inbox(&env, "[]");
    assert_eq!(reconciler.reconcile(&env), [long], "the journal has space for the entry");
    // The messages of the first round are no longer in the journal. The reconciler forgets them and
    // records nothing.
    let inbox = env.team.inbox(&agent("a0"));
    overwrite_in_place(&inbox.path(), "[]");
    let journal = env.path().join("journal/orchard.jsonl");
    let size = || std::fs::metadata(&journal).unwrap().len();
    let before = size();
    for _ in 0..2 {
        assert_eq!(
            reconciler.inner.reconcile(&inbox, InboxChange::Rewritten, ReaderKind::OwnDelivery).unwrap(),
            []
        );
    }
    assert_eq!(size(), before);
    assert!(!reconciler.inner.inboxes_with_unseen().contains(&"a0.json".to_owned()));
}

#[test]
fn a_journal_over_its_size_limit_is_read() {
    let (env, mut reconciler) = (TestRoot::new(), TestReconciler::default());
    send(&env, "a");
    let journal = env.path().join("journal/orchard.jsonl");
    let entries = std::fs::read_to_string(&journal).unwrap();
    overwrite_in_place(&journal, entries + &"\n".repeat(9 << 20));
    write_inbox(&env, "[]");
    for _ in 0..2 {
        reconciler.inner.read_journal(&env.team).unwrap();
    }
    assert_eq!(reconciler.reconcile(&env), ["a"]);
    assert_eq!(env.team.restored_counts().unwrap(), [("bob.json".to_owned(), 1)].into());
}

#[test]
fn messages_to_session_teams_are_not_recorded() {
    let env = TestRoot::new();
    let dir = env.path().join("root/teams/session-1");
    std::fs::create_dir_all(&dir).unwrap();
    overwrite_in_place(&dir.join("config.json"), crate::test_root::config("session-1").to_text());
    let team =
        env.root.team(&protocol::team_and_member_names::TeamName::parse("session-1").unwrap()).unwrap();
    team.inbox(&agent("bob")).append(&message("a")).unwrap();
    assert!(!env.path().join("journal").exists());
}

/// Acts as a foreign writer that takes the lock and removes each message that it reads for the
/// first time.
fn drop_new_messages(env: &TestRoot, dropped: &mut BTreeSet<String>) {
    let lock = env.inbox_path("bob.json.lock");
    if std::fs::create_dir(&lock).is_err() {
        return;
    }
    let mut messages: Vec<serde_json::Value> = serde_json::from_str(&inbox_text(env)).unwrap();
    let before = messages.len();
    messages.retain(|message| !dropped.insert(message["text"].as_str().unwrap().to_owned()));
    if messages.len() < before {
        write_inbox(env, &serde_json::to_string_pretty(&messages).unwrap());
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
                    bob_inbox(env).append(&message).unwrap();
                }
                is_done.fetch_add(1, Ordering::Relaxed);
            });
        }
        while is_done.load(Ordering::Relaxed) < SENDERS || dropped.len() < SENDERS * MESSAGES_EACH {
            drop_new_messages(&env, &mut dropped);
            reconciler.reconcile(&env);
        }
    });
    reconciler.reconcile(&env);
    for sender in 0..SENDERS {
        let texts = unread_texts(&env).into_iter().filter(|text| text.starts_with(&format!("{sender}/")));
        assert_eq!(
            texts.collect::<Vec<_>>(),
            (0..MESSAGES_EACH).map(|n| format!("{sender}/{n}")).collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_late_journal_entry_does_not_reorder_the_messages_of_a_sender() {
    let (env, message_from) =
        (TestRoot::new(), |sender: &str, text: &str| Message { from: sender.into(), ..message(text) });
    bob_inbox(&env).append(&message_from("b", "b1")).unwrap();
    let journal = env.path().join("journal/orchard.jsonl");
    let late_entry = std::fs::read_to_string(&journal).unwrap();
    overwrite_in_place(&journal, "");
    for text in ["a1", "a2"] {
        bob_inbox(&env).append(&message_from("a", text)).unwrap();
    }
    overwrite_in_place(&journal, std::fs::read_to_string(&journal).unwrap() + &late_entry);
    let messages: Vec<serde_json::Value> = serde_json::from_str(&inbox_text(&env)).unwrap();
    write_inbox(&env, &serde_json::json!(messages[..2]).to_string());
    assert_eq!(TestReconciler::default().reconcile(&env), ["a2"]);
    assert_eq!(unread_texts(&env), ["b1", "a1", "a2"]);
}
