//! Reading the new entries of an inbox with a cursor.

use crate::test_root::{TestRoot, agent, message, overwrite_in_place, sleep_ms};
use protocol::inbox_file::{InboxEntry, Message};
use store::{Inbox, InboxCursor};

fn texts(entries: &[InboxEntry]) -> Vec<String> {
    entries.iter().map(|entry| entry.message.as_ref().map_or("?".to_owned(), |m| m.text.clone())).collect()
}

fn root_and_inbox() -> (TestRoot, Inbox) {
    let env = TestRoot::new();
    let inbox = env.team.inbox(&agent("bob"));
    (env, inbox)
}

/// Appends messages whose texts are these numbers.
fn append_numbers(inbox: &Inbox, numbers: impl IntoIterator<Item = usize>) {
    let messages: Vec<Message> = numbers.into_iter().map(|n| message(&n.to_string())).collect();
    inbox.append_all(&messages).unwrap();
}

/// Reads the entries behind the cursor, moves the cursor, and returns the texts.
fn read_next(inbox: &Inbox, cursor: &mut Option<InboxCursor>) -> Vec<String> {
    let (new, next_cursor) = inbox.read_since(cursor.as_ref()).unwrap();
    let read_count = next_cursor.entry_count() - new.len();
    assert!(
        new.iter().enumerate().all(|(at, entry)| entry.index == read_count + at),
        "each entry has its index in the file"
    );
    *cursor = Some(next_cursor);
    texts(&new)
}

#[test]
fn each_read_returns_the_entries_since_the_last_one() {
    let (_env, inbox) = root_and_inbox();
    let mut cursor = None;
    assert!(read_next(&inbox, &mut cursor).is_empty());
    append_numbers(&inbox, 0..3);
    assert_eq!(read_next(&inbox, &mut cursor), ["0", "1", "2"]);
    assert!(read_next(&inbox, &mut cursor).is_empty());
    append_numbers(&inbox, 3..5);
    assert_eq!(read_next(&inbox, &mut cursor), ["3", "4"]);
    sleep_ms(80);
    assert!(read_next(&inbox, &mut cursor).is_empty());
    assert!(read_next(&inbox, &mut cursor).is_empty(), "an unchanged file has no new entries");
    append_numbers(&inbox, 5..6);
    assert_eq!(read_next(&inbox, &mut cursor), ["5"]);
    let cursor = cursor.unwrap();
    assert_eq!((cursor.entry_count(), cursor.unread_count(), cursor.is_reset()), (6, 6, false));
}

#[test]
fn only_the_new_end_of_a_grown_file_is_read() {
    let (_env, inbox) = root_and_inbox();
    append_numbers(&inbox, 0..50);
    let mut cursor = None;
    read_next(&inbox, &mut cursor);
    append_numbers(&inbox, 50..52);
    // The beginning of the file is damaged, but is not read.
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    overwrite_in_place(&inbox.path(), text.replacen("from", "\"\"\"\"", 1));
    assert_eq!(read_next(&inbox, &mut cursor), ["50", "51"]);
    overwrite_in_place(&inbox.path(), text);
    assert!(read_next(&inbox, &mut cursor).is_empty());
}

#[test]
fn marking_entries_read_changes_only_the_unread_count() {
    let (_env, inbox) = root_and_inbox();
    append_numbers(&inbox, 0..5);
    let mut cursor = None;
    read_next(&inbox, &mut cursor);
    inbox.mark_read(&inbox.read().unwrap()[1..]).unwrap();
    assert!(read_next(&inbox, &mut cursor).is_empty());
    assert_eq!((cursor.as_ref().unwrap().unread_count(), cursor.as_ref().unwrap().is_reset()), (1, false));
    inbox.mark_all_read().unwrap();
    append_numbers(&inbox, 5..6);
    assert_eq!(read_next(&inbox, &mut cursor), ["5"]);
    assert_eq!((cursor.as_ref().unwrap().unread_count(), cursor.as_ref().unwrap().is_reset()), (1, false));
}

#[test]
fn a_cursor_is_reset_after_removed_or_rewritten_entries() {
    let (_env, inbox) = root_and_inbox();
    append_numbers(&inbox, 0..4);
    let original = std::fs::read_to_string(inbox.path()).unwrap();
    let mut first = None;
    read_next(&inbox, &mut first);
    for (text, expected) in [
        ("[]".to_owned(), vec![]),
        (original.replacen("\"0\"", "\"9\"", 1).replacen("\"3\"", "\"8\"", 1), vec!["9", "1", "2", "8"]),
        (r#"[{"from":"a","text":"t","timestamp":"x"},7]"#.to_owned(), vec!["t", "?"]),
    ] {
        overwrite_in_place(&inbox.path(), text);
        let mut cursor = first.clone();
        assert_eq!(read_next(&inbox, &mut cursor), expected);
        assert!(cursor.as_ref().unwrap().is_reset());
        read_next(&inbox, &mut cursor);
        assert!(!cursor.unwrap().is_reset(), "the cursor is reset only once");
    }
    std::fs::remove_file(inbox.path()).unwrap();
    let mut cursor = first.clone();
    assert!(read_next(&inbox, &mut cursor).is_empty());
    assert!(cursor.unwrap().is_reset());
}

#[test]
fn foreign_formatting_and_half_written_files_are_read() {
    let (_env, inbox) = root_and_inbox();
    let compact_inbox = |count: usize| {
        let entries = (0..count).map(|n| format!(r#"{{"from":"a","text":"{n}🪜","timestamp":"x"}}"#));
        format!("[{}]\n", entries.collect::<Vec<_>>().join(","))
    };
    overwrite_in_place(&inbox.path(), compact_inbox(2));
    let mut cursor = None;
    read_next(&inbox, &mut cursor);
    overwrite_in_place(&inbox.path(), compact_inbox(4));
    assert_eq!(read_next(&inbox, &mut cursor), ["2🪜", "3🪜"]);
    let complete_text = compact_inbox(6);
    overwrite_in_place(&inbox.path(), &complete_text[..complete_text.len() - 20]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(300);
            overwrite_in_place(&inbox.path(), &complete_text);
        });
        assert_eq!(read_next(&inbox, &mut cursor), ["4🪜", "5🪜"]);
    });
    overwrite_in_place(&inbox.path(), "[,]");
    assert!(inbox.read_since(cursor.as_ref()).is_err());
}

/// Compares every read with a read of the whole inbox.
#[test]
fn random_appends_and_marks_are_read_like_the_whole_file() {
    let (_env, inbox) = root_and_inbox();
    let (mut cursor, mut random, mut read_count) = (None, 7_u64, 0);
    for round in 0..120 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        match random >> 61 {
            0..4 => append_numbers(&inbox, round * 10..round * 10 + (random >> 40) as usize % 3),
            4 | 5 => {
                let all = inbox.read().unwrap();
                let marked_entries =
                    all.iter().filter(|entry| (random >> (entry.index % 50)) & 1 == 1).cloned();
                inbox.mark_read(&marked_entries.collect::<Vec<_>>()).unwrap();
            }
            _ => {}
        }
        let all = inbox.read().unwrap();
        assert_eq!(read_next(&inbox, &mut cursor), texts(&all[read_count..]), "round {round}");
        read_count = all.len();
        let unread = all.iter().filter(|entry| entry.unread().is_some()).count();
        let cursor = cursor.as_ref().unwrap();
        assert_eq!(
            (cursor.entry_count(), cursor.unread_count(), cursor.is_reset()),
            (read_count, unread, false)
        );
    }
}

/// Reads all chunks behind the cursor. Returns the texts of each chunk, and the last cursor.
fn read_chunks(inbox: &Inbox, mut cursor: Option<InboxCursor>) -> (Vec<Vec<String>>, InboxCursor) {
    let mut all = Vec::new();
    loop {
        let (new, next) = inbox.read_chunk_since(cursor.as_ref()).unwrap();
        all.push(texts(&new));
        if !next.has_more() {
            return (all, next);
        }
        cursor = Some(next);
    }
}

/// A message of `size` KiB whose text begins with `n`.
fn long_message(n: usize, size: usize) -> Message {
    message(&format!("{n}{}", "é\"\\🪜".repeat((size << 10) / 8)))
}

#[test]
fn a_long_inbox_is_read_in_chunks_without_gaps() {
    let (_env, inbox) = root_and_inbox();
    // The message of 200 KiB nearly fills a chunk. A chunk holds many of the short messages.
    let all: Vec<Message> = [1, 200, 2, 120, 3].iter().map(|size| long_message(*size, *size)).collect();
    inbox.append_all(&all).unwrap();
    append_numbers(&inbox, 0..5_000);
    // The longest message becomes longer than three chunks.
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    overwrite_in_place(&inbox.path(), text.replacen("\"200", &format!("\"{}200", "x".repeat(900 << 10)), 1));
    let all_texts = texts(&inbox.read_since(None).unwrap().0);
    assert_eq!(all_texts, texts(&inbox.read().unwrap()));
    let (chunks, cursor) = read_chunks(&inbox, None);
    assert_eq!(chunks.concat(), all_texts);
    assert!(chunks.len() > 3 && chunks.iter().all(|chunk| chunk.len() < 3_000), "{}", chunks.len());
    assert_eq!((cursor.entry_count(), cursor.unread_count()), (5_005, 5_005));
    assert_eq!(inbox.fold(|count: &mut usize, _| *count += 1).unwrap(), 5_005);
    append_numbers(&inbox, 0..5_000);
    let (more, cursor) = read_chunks(&inbox, Some(cursor));
    assert_eq!((more.concat().len(), cursor.entry_count(), cursor.is_reset()), (5_000, 10_005, false));
}

#[test]
fn changes_between_two_chunks_give_each_entry_once_or_reset_the_cursor() {
    let (_env, inbox) = root_and_inbox();
    append_numbers(&inbox, 0..10_000);
    let (first, cursor) = inbox.read_chunk_since(None).unwrap();
    assert!(cursor.has_more());
    // Marking an entry moves all bytes behind it.
    inbox.mark_read(&first[..100]).unwrap();
    let (rest, end) = read_chunks(&inbox, Some(cursor.clone()));
    assert_eq!([texts(&first), rest.concat()].concat(), texts(&inbox.read().unwrap()));
    assert_eq!((end.unread_count(), end.is_reset()), (9_900, false));
    let all = inbox.read().unwrap();
    let remaining: Vec<&str> = all[50..].iter().map(|entry| entry.raw.as_str()).collect();
    overwrite_in_place(&inbox.path(), format!("[{}]", remaining.join(",")));
    let mut cursor = cursor;
    let mut entries_after_reset = Vec::new();
    while cursor.has_more() {
        let (new, next) = inbox.read_chunk_since(Some(&cursor)).unwrap();
        assert!(next.is_reset(), "the cursor is reset in each chunk");
        (entries_after_reset, cursor) = ([entries_after_reset, texts(&new)].concat(), next);
    }
    assert_eq!(entries_after_reset, texts(&all[50..]));
    append_numbers(&inbox, 7..8);
    let (new, next) = inbox.read_chunk_since(Some(&cursor)).unwrap();
    assert_eq!((texts(&new), next.is_reset()), (vec!["7".to_owned()], false));
}

/// Reading in chunks accepts and rejects the same texts as reading the whole file.
#[test]
fn chunks_and_whole_reads_accept_the_same_files() {
    let whitespace = " \n\t\r".repeat(100_000);
    let deep = format!("[{}{}]", "[".repeat(1_100), "]".repeat(1_100));
    let texts = [
        "[]",
        " [ ] \n",
        "\u{feff}[1]",
        "[1,2.5e3,true,null,\"a\"]",
        "[[],{}]",
        "[1 , 2]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "[1",
        "[",
        "]",
        "",
        "{}",
        "[1]]",
        "[1] x",
        "[\u{feff}1]",
        "[\"\\ud800\"]",
        "[nul]",
        "[1]\u{0}",
        &deep,
    ];
    let padded = [
        format!("[{whitespace}1{whitespace},{whitespace}2{whitespace}]{whitespace}"),
        format!("{whitespace}[]"),
        format!("[1{whitespace}"),
    ];
    // Both readers read an invalid file again until the timeout.
    std::thread::scope(|scope| {
        for text in texts.into_iter().chain(padded.iter().map(String::as_str)) {
            scope.spawn(move || {
                let (_env, inbox) = root_and_inbox();
                overwrite_in_place(&inbox.path(), text);
                let chunk = inbox.read_chunk_since(None).map(|(entries, _)| entries).ok();
                assert_eq!(
                    chunk,
                    protocol::inbox_file::parse_inbox(text).ok(),
                    "{}",
                    &text[..text.len().min(30)]
                );
            });
        }
    });
}
