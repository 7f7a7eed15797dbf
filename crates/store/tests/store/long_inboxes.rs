//! Long inboxes: the store rewrites only the tail. The file has the same content as after a
//! complete rewrite, and the changes of other programs are kept.

use crate::test_root::{TestRoot, agent, list_dir, message, overwrite_in_place};
use protocol::inbox_file::{Message, with_marked_read, with_message, with_messages};
use std::fs::{File, OpenOptions, read_to_string};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use store::{Error, Inbox};

/// An inbox that is long enough for tail rewrites.
fn long_inbox(env: &TestRoot) -> (Inbox, PathBuf) {
    let inbox = env.team.inbox(&agent("bob"));
    inbox.append_all(&(0..500).map(|n| message(&n.to_string())).collect::<Vec<_>>()).unwrap();
    // The first change creates the shadow copy.
    inbox.append(&message("500")).unwrap();
    assert!(shadow_path(env).exists(), "the shadow copy exists");
    (inbox, env.inbox_path("bob.json"))
}

fn shadow_path(env: &TestRoot) -> PathBuf {
    env.inbox_path(".bob.json.shadow")
}

fn inode(path: &Path) -> u64 {
    path.metadata().unwrap().ino()
}

/// Calls `change`. Returns whether the call exchanged the file with its shadow copy. Otherwise the
/// call rewrote the complete file.
fn is_exchanged_by(env: &TestRoot, change: impl FnOnce()) -> bool {
    let path = env.inbox_path("bob.json");
    let before = (inode(&path), inode(&shadow_path(env)));
    change();
    (inode(&shadow_path(env)), inode(&path)) == before
}

#[test]
fn a_rewritten_tail_reads_like_a_complete_rewrite() {
    for pretty in [true, false] {
        let env = TestRoot::new();
        let mut expected = if pretty { "[]".to_owned() } else { "[{\"from\":\"x\"} ]\n".to_owned() };
        overwrite_in_place(&env.inbox_path("bob.json"), &expected);
        let inbox = env.team.inbox(&agent("bob"));
        let unusual_message = |n: usize| message(&format!("{n} , ] \"é🪜\\"));
        for n in 0..300 {
            let messages: Vec<Message> = (0..1 + n % 3).map(|m| unusual_message(n * 10 + m)).collect();
            inbox.append_all(&messages).unwrap();
            expected = with_messages(&expected, &messages).unwrap();
            if n % 7 == 6 {
                let unread = inbox.read_unread().unwrap();
                let entries: Vec<_> = unread.into_iter().skip(n % 2).collect();
                inbox.mark_read(&entries).unwrap();
                let indices: Vec<usize> = entries.iter().map(|entry| entry.index).collect();
                expected = with_marked_read(&expected, &indices).unwrap();
            }
            assert_eq!(read_to_string(env.inbox_path("bob.json")).unwrap(), expected, "{n}");
        }
        let all = env.reopen_team().inbox(&agent("bob")).read().unwrap();
        let unread: Vec<_> = all.into_iter().filter(|entry| entry.unread().is_some()).collect();
        assert_eq!(inbox.read_unread().unwrap(), unread, "each entry has its index in the file");
        assert_eq!(
            list_dir(&env.inbox_path("")),
            [env.inbox_path("bob.json")],
            "no lock or temporary file remains"
        );
    }
}

#[test]
fn an_append_and_a_read_mark_exchange_the_file() {
    let env = TestRoot::new();
    let (inbox, _) = long_inbox(&env);
    for n in 0..20 {
        assert!(is_exchanged_by(&env, || inbox.append(&message(&n.to_string())).unwrap()), "message {n}");
        let last = inbox.read_unread().unwrap().pop().unwrap();
        assert!(is_exchanged_by(&env, || inbox.mark_read(&[last]).unwrap()), "mark {n}");
    }
}

#[test]
fn a_reader_with_the_old_file_open_sees_it_complete() {
    let env = TestRoot::new();
    let (inbox, path) = long_inbox(&env);
    let mut readers = Vec::new();
    for n in 0..10 {
        readers.push((File::open(&path).unwrap(), read_to_string(&path).unwrap()));
        inbox.append(&message(&n.to_string())).unwrap();
    }
    for (mut reader, expected) in readers {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert!(text == expected, "{} bytes in place of {}", text.len(), expected.len());
    }
}

#[test]
fn foreign_writes_of_equal_size_are_kept() {
    let env = TestRoot::new();
    let (inbox, path) = long_inbox(&env);
    for n in 0..50 {
        inbox.append(&message(&format!("ours {n}"))).unwrap();
        // The foreign writer writes the same number of bytes in place, within one clock tick.
        let text = read_to_string(&path).unwrap();
        let at = text.find(&format!("\"{n}\"")).unwrap();
        let replacement = format!("\"{}\"", "x".repeat(n.to_string().len()));
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .write_all_at(replacement.as_bytes(), at as u64)
            .unwrap();
    }
    inbox.append(&message("last")).unwrap();
    let texts: Vec<String> =
        inbox.read().unwrap().into_iter().map(|entry| entry.message.unwrap().text).collect();
    assert!((0..50).all(|n: usize| texts[n].chars().all(|c| c == 'x')), "{texts:?}");
    assert!((0..50).all(|n| texts[501 + n] == format!("ours {n}")));
    assert_eq!(texts.len(), 552);
}

#[test]
fn a_file_that_others_damaged_is_reported_and_not_changed() {
    let env = TestRoot::new();
    let (inbox, path) = long_inbox(&env);
    let valid = read_to_string(&path).unwrap();
    for damaged in [&valid[..valid.len() - 20], &format!("{valid}{}", &valid[valid.len() - 300..])] {
        overwrite_in_place(&path, damaged);
        assert!(matches!(inbox.append(&message("no")), Err(Error::Corrupt { .. })));
        assert_eq!(read_to_string(&path).unwrap(), damaged);
    }
    overwrite_in_place(&path, &valid);
    inbox.append(&message("yes")).unwrap();
    assert_eq!(read_to_string(&path).unwrap(), with_message(&valid, &last_message(&inbox)).unwrap());
}

/// The last message of the inbox.
fn last_message(inbox: &Inbox) -> Message {
    inbox.read().unwrap().pop().unwrap().message.unwrap()
}

#[test]
fn a_wrong_tail_index_is_not_used() {
    let env = TestRoot::new();
    let (inbox, path) = long_inbox(&env);
    let tail_index = env.path().join("journal/orchard@bob.json");
    let valid = read_to_string(&tail_index).unwrap();
    let replace_digits = |text: &str| text.replace(['1', '2', '3'], "4");
    for wrong in [String::new(), "{}".to_owned(), valid.replace("entries", "others"), replace_digits(&valid)]
    {
        overwrite_in_place(&tail_index, wrong);
        let before = read_to_string(&path).unwrap();
        inbox.append(&message("x")).unwrap();
        let last = last_message(&inbox);
        assert_eq!(read_to_string(&path).unwrap(), with_message(&before, &last).unwrap());
    }
    // A copy of the file has the same bytes but another inode, so the tail index does not fit.
    inbox.append(&message("y")).unwrap();
    let text = read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    overwrite_in_place(&path, &text);
    assert!(!is_exchanged_by(&env, || inbox.append(&message("z")).unwrap()));
}

#[test]
fn a_foreign_file_at_the_shadow_path_is_never_written() {
    let env = TestRoot::new();
    let (inbox, path) = long_inbox(&env);
    let target = env.path().join("target");
    overwrite_in_place(&target, "mine");
    std::fs::remove_file(shadow_path(&env)).unwrap();
    std::os::unix::fs::symlink(&target, shadow_path(&env)).unwrap();
    let before = inbox.read().unwrap().len();
    inbox.append(&message("a")).unwrap();
    // A file of the right size that has a second hard link is not used either.
    std::fs::remove_file(shadow_path(&env)).unwrap();
    std::fs::copy(&path, &target).unwrap();
    let copied_text = read_to_string(&target).unwrap();
    std::fs::hard_link(&target, shadow_path(&env)).unwrap();
    inbox.append(&message("b")).unwrap();
    assert_eq!(read_to_string(&target).unwrap(), copied_text);
    assert_eq!(inbox.read().unwrap().len(), before + 2);
}
