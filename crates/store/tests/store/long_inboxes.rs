//! Long inboxes, whose end alone is changed: what stands in the file is the same as if all of it had been written, and
//! whatever others do to it meanwhile counts.

use crate::fixture::{TestRoot, agent, list_dir, message, overwrite_in_place};
use protocol::message::{Message, with_marked_read, with_message, with_messages};
use std::fs::{File, OpenOptions, read_to_string};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use store::{Error, Inbox};

/// An inbox of so many messages that its end alone is changed from here on.
fn long_inbox(ground: &TestRoot) -> (Inbox, PathBuf) {
    let inbox = ground.team.inbox(&agent("bob"));
    inbox.append_all(&(0..500).map(|n| message(&n.to_string())).collect::<Vec<_>>()).unwrap();
    // What comes after has a twin to exchange it with.
    inbox.append(&message("500")).unwrap();
    assert!(shadow_path(ground).exists(), "it is a long one");
    (inbox, ground.inbox_path("bob.json"))
}

fn shadow_path(ground: &TestRoot) -> PathBuf {
    ground.inbox_path(".bob.json.twin")
}

fn inode(path: &Path) -> u64 {
    path.metadata().unwrap().ino()
}

/// True if the twin is the file that was there before `change`: it was exchanged, and not written whole.
fn is_exchanged(ground: &TestRoot, change: impl FnOnce()) -> bool {
    let path = ground.inbox_path("bob.json");
    let before = (inode(&path), inode(&shadow_path(ground)));
    change();
    (inode(&shadow_path(ground)), inode(&path)) == before
}

#[test]
fn an_end_that_is_changed_reads_as_if_all_had_been_written() {
    for pretty in [true, false] {
        let ground = TestRoot::new();
        let mut expected = if pretty { "[]".to_owned() } else { "[{\"from\":\"x\"} ]\n".to_owned() };
        overwrite_in_place(&ground.inbox_path("bob.json"), &expected);
        let inbox = ground.team.inbox(&agent("bob"));
        let odd = |n: usize| message(&format!("{n} , ] \"é🪜\\"));
        for n in 0..300 {
            let several: Vec<Message> = (0..1 + n % 3).map(|m| odd(n * 10 + m)).collect();
            inbox.append_all(&several).unwrap();
            expected = with_messages(&expected, &several).unwrap();
            if n % 7 == 6 {
                let unread = inbox.read_unread().unwrap();
                let some: Vec<_> = unread.into_iter().skip(n % 2).collect();
                inbox.mark_read(&some).unwrap();
                let indices: Vec<usize> = some.iter().map(|entry| entry.index).collect();
                expected = with_marked_read(&expected, &indices).unwrap();
            }
            assert_eq!(read_to_string(ground.inbox_path("bob.json")).unwrap(), expected, "{n}");
        }
        let whole = ground.reopen_team().inbox(&agent("bob")).read().unwrap();
        let unread: Vec<_> = whole.into_iter().filter(|entry| entry.unread().is_some()).collect();
        assert_eq!(inbox.read_unread().unwrap(), unread, "numbered as in the whole");
        assert_eq!(list_dir(&ground.inbox_path("")), [ground.inbox_path("bob.json")], "nothing is left over");
    }
}

#[test]
fn a_message_and_a_mark_cost_an_exchange() {
    let ground = TestRoot::new();
    let (inbox, _) = long_inbox(&ground);
    for n in 0..20 {
        assert!(is_exchanged(&ground, || inbox.append(&message(&n.to_string())).unwrap()), "message {n}");
        let last = inbox.read_unread().unwrap().pop().unwrap();
        assert!(is_exchanged(&ground, || inbox.mark_read(&[last]).unwrap()), "mark {n}");
    }
}

#[test]
fn whoever_reads_on_in_what_was_exchanged_has_it_whole() {
    let ground = TestRoot::new();
    let (inbox, path) = long_inbox(&ground);
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
fn what_others_write_meanwhile_counts_even_if_it_is_as_long() {
    let ground = TestRoot::new();
    let (inbox, path) = long_inbox(&ground);
    for n in 0..50 {
        inbox.append(&message(&format!("ours {n}"))).unwrap();
        // In place, within the same tick of a coarse clock, and of the same length.
        let text = read_to_string(&path).unwrap();
        let at = text.find(&format!("\"{n}\"")).unwrap();
        let theirs = format!("\"{}\"", "x".repeat(n.to_string().len()));
        OpenOptions::new()
            .write(true)
            .open(&path)
            .unwrap()
            .write_all_at(theirs.as_bytes(), at as u64)
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
fn what_others_break_is_told_and_left() {
    let ground = TestRoot::new();
    let (inbox, path) = long_inbox(&ground);
    let whole = read_to_string(&path).unwrap();
    for broken in [&whole[..whole.len() - 20], &format!("{whole}{}", &whole[whole.len() - 300..])] {
        overwrite_in_place(&path, broken);
        assert!(matches!(inbox.append(&message("no")), Err(Error::Corrupt { .. })));
        assert_eq!(read_to_string(&path).unwrap(), broken);
    }
    overwrite_in_place(&path, &whole);
    inbox.append(&message("yes")).unwrap();
    assert_eq!(read_to_string(&path).unwrap(), with_message(&whole, &message_of(&inbox)).unwrap());
}

/// The last one.
fn message_of(inbox: &Inbox) -> Message {
    inbox.read().unwrap().pop().unwrap().message.unwrap()
}

#[test]
fn a_note_that_is_wrong_or_of_another_file_is_not_believed() {
    let ground = TestRoot::new();
    let (inbox, path) = long_inbox(&ground);
    let note = ground.path().join("journal/orchard@bob.json");
    let good = read_to_string(&note).unwrap();
    let digits = |text: &str| text.replace(['1', '2', '3'], "4");
    for bad in [String::new(), "{}".to_owned(), good.replace("entries", "others"), digits(&good)] {
        overwrite_in_place(&note, bad);
        let before = read_to_string(&path).unwrap();
        inbox.append(&message("x")).unwrap();
        let last = message_of(&inbox);
        assert_eq!(read_to_string(&path).unwrap(), with_message(&before, &last).unwrap());
    }
    // One of the same bytes, but another file.
    inbox.append(&message("y")).unwrap();
    let text = read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    overwrite_in_place(&path, &text);
    assert!(!is_exchanged(&ground, || inbox.append(&message("z")).unwrap()));
}

#[test]
fn a_twin_that_is_no_file_of_ours_is_never_written_to() {
    let ground = TestRoot::new();
    let (inbox, path) = long_inbox(&ground);
    let precious = ground.path().join("precious");
    overwrite_in_place(&precious, "mine");
    std::fs::remove_file(shadow_path(&ground)).unwrap();
    std::os::unix::fs::symlink(&precious, shadow_path(&ground)).unwrap();
    let before = inbox.read().unwrap().len();
    inbox.append(&message("a")).unwrap();
    // As long as it was, too, and by another name.
    std::fs::remove_file(shadow_path(&ground)).unwrap();
    std::fs::copy(&path, &precious).unwrap();
    let copied = read_to_string(&precious).unwrap();
    std::fs::hard_link(&precious, shadow_path(&ground)).unwrap();
    inbox.append(&message("b")).unwrap();
    assert_eq!(read_to_string(&precious).unwrap(), copied);
    assert_eq!(inbox.read().unwrap().len(), before + 2);
}
