//! Sending messages, reading them and marking them read, by one thread and by several at the same
//! time.

use crate::test_root::{TestRoot, agent, hostile_inbox, list_dir, message, overwrite_in_place};
use protocol::inbox_file::Message;
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use store::Error;

#[test]
fn eight_senders_lose_no_message_and_a_reader_sees_complete_arrays() {
    let env = TestRoot::new();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read_repeatedly(&env, &is_done));
        let sender = |sender: usize| {
            let inbox = env.reopen_team().inbox(&agent("bob"));
            (0..100).for_each(|n| inbox.append(&message(&format!("{sender}:{n}"))).unwrap());
        };
        let senders: Vec<_> = (0..8).map(|number| scope.spawn(move || sender(number))).collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        is_done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    let texts = texts(&env);
    assert_eq!(texts.len(), 800);
    assert_eq!(texts.iter().collect::<BTreeSet<_>>().len(), 800);
    for sender in 0..8 {
        let own: Vec<_> = texts.iter().filter(|text| text.starts_with(&format!("{sender}:"))).collect();
        assert!(
            own.iter().enumerate().all(|(n, text)| text.ends_with(&format!(":{n}"))),
            "the messages of sender {sender} are in order"
        );
    }
    assert_eq!(
        list_dir(&env.inbox_path("")),
        [env.inbox_path("bob.json")],
        "no lock or temporary file remains"
    );
}

/// Reads the file directly and without pause until `is_done`. Checks that each read finds a
/// complete array that is not shorter than before. Returns the length of the last array.
fn read_repeatedly(env: &TestRoot, is_done: &AtomicBool) -> usize {
    let mut last_length = 0;
    while !is_done.load(Ordering::Relaxed) {
        let Ok(text) = std::fs::read_to_string(env.inbox_path("bob.json")) else { continue };
        let entries: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        assert!(entries.len() >= last_length);
        last_length = entries.len();
    }
    last_length
}

fn texts(env: &TestRoot) -> Vec<String> {
    let entries = env.team.inbox(&agent("bob")).read().unwrap();
    entries.into_iter().map(|entry| entry.message.unwrap().text).collect()
}

#[test]
fn an_inbox_without_a_file_is_empty() {
    let env = TestRoot::new();
    assert!(env.team.inbox(&agent("ann")).read().unwrap().is_empty());
    assert!(!env.inbox_path("ann.json").exists(), "reading creates no file");
}

#[test]
fn a_new_inbox_is_private_and_an_old_one_keeps_its_mode() {
    let env = TestRoot::new();
    let inbox = env.team.inbox(&agent("bob"));
    let mode = || std::fs::metadata(inbox.path()).unwrap().permissions().mode() & 0o7777;
    inbox.append(&message("one")).unwrap();
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(inbox.path(), std::fs::Permissions::from_mode(0o640)).unwrap();
    inbox.append(&message("two")).unwrap();
    assert_eq!(mode(), 0o640);
}

#[test]
fn moved_entries_are_marked_read() {
    let env = TestRoot::new();
    let inbox = env.team.inbox(&agent("bob"));
    ["a", "b", "c"].iter().for_each(|text| inbox.append(&message(text)).unwrap());
    let entries = inbox.read().unwrap();
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    let first =
        text.find("  {").unwrap()..text.find("  {\n    \"from\": \"ann\",\n    \"text\": \"b\"").unwrap();
    overwrite_in_place(&inbox.path(), text.replacen(&text[first], "", 1));
    inbox.mark_read(&entries[..2]).unwrap();
    let read: Vec<bool> =
        inbox.read().unwrap().into_iter().map(|entry| entry.message.unwrap().read).collect();
    assert_eq!(read, [true, false], "a was removed, and b is read");
    inbox.mark_all_read().unwrap();
    assert!(inbox.read().unwrap().iter().all(|entry| entry.unread().is_none()));
}

#[test]
fn a_reformatted_entry_is_marked_read() {
    let env = TestRoot::new();
    let inbox = env.team.inbox(&agent("bob"));
    inbox.append_all(&["one", "two", "three"].map(message)).unwrap();
    let unread = inbox.read_unread().unwrap();
    let path = env.inbox_path("bob.json");
    let mut entries: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    entries.swap(0, 1);
    overwrite_in_place(&path, serde_json::to_string(&entries).unwrap());
    inbox.mark_read(&unread[..2]).unwrap();
    let remaining: Vec<String> =
        inbox.read_unread().unwrap().into_iter().map(|entry| entry.message.unwrap().text).collect();
    assert_eq!(remaining, ["three"]);
}

#[test]
fn foreign_entries_are_kept_byte_for_byte() {
    for name in ["lone-surrogate", "wrong-types", "duplicate-keys", "numbers", "spoof", "bom"] {
        let env = TestRoot::new();
        let inbox = env.team.inbox(&agent("bob"));
        overwrite_in_place(&inbox.path(), hostile_inbox(name));
        let before = inbox.read().unwrap();
        inbox.append(&message("new")).unwrap();
        inbox.mark_read(&inbox.read().unwrap()[before.len()..]).unwrap();
        let after = inbox.read().unwrap();
        assert_eq!(after[..before.len()], before, "{name}");
        assert!(after[before.len()].message.as_ref().unwrap().read);
        let bytes = std::fs::read(inbox.path()).unwrap();
        assert_eq!(bytes.starts_with(b"\xef\xbb\xbf"), name == "bom");
    }
}

#[test]
fn a_message_over_the_limit_is_rejected() {
    let env = TestRoot::new();
    let inbox = env.team.inbox(&agent("bob"));
    inbox.append(&message(&"x".repeat(256 << 10))).unwrap();
    let error = inbox.append(&message(&"x".repeat((256 << 10) + 1))).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(inbox.read().unwrap().len(), 1);
    let with_summary = Message { summary: Some("x".repeat(2 << 10)), ..message("short") };
    let error = inbox.append(&with_summary).unwrap_err();
    assert_eq!(error.to_string(), "cannot accept a message summary of 2048 bytes: 1024 is the limit");
}
