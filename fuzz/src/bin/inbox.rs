//! Fuzzes the edits of an inbox: a message is appended, and entries are marked as read. Entries
//! that an edit does not name stay unchanged.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::inbox_file::{InboxEntry, Message, parse_inbox, with_marked_read, with_message};

fn raw_texts(entries: &[InboxEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.raw.as_str()).collect()
}

fuzz_target!(|text: &str| {
    let Ok(before) = parse_inbox(text) else {
        assert!(with_marked_read(text, &[0]).is_err(), "an invalid inbox is not edited");
        return;
    };
    let message = Message {
        from: "ann".into(),
        text: text.into(),
        summary: None,
        timestamp: "2026-01-01T00:00:00.000Z".into(),
        color: None,
        read: false,
    };
    let extended = with_message(text, &message).expect("a message can be appended to a valid inbox");
    let after = parse_inbox(&extended).expect("the extended inbox can be parsed");
    let (last, rest) = after.split_last().expect("the inbox has the new message");
    assert_eq!(raw_texts(rest), raw_texts(&before));
    assert_eq!(last.message.as_ref(), Ok(&message));

    let odd_indices: Vec<usize> = (0..before.len()).filter(|index| index % 2 == 1).collect();
    let marked =
        with_marked_read(text, &odd_indices).expect("entries of a valid inbox can be marked as read");
    let after = parse_inbox(&marked).expect("the inbox with marked entries can be parsed");
    assert_eq!(after.len(), before.len());
    for (old, new) in before.iter().zip(&after) {
        match &old.message {
            _ if old.index % 2 == 0 => assert_eq!(old.raw, new.raw),
            Ok(message) => assert_eq!(new.message, Ok(Message { read: true, ..message.clone() })),
            Err(_) => {}
        }
    }
    let marked_twice = with_marked_read(&marked, &odd_indices).expect("entries can be marked again");
    assert_eq!(marked_twice, marked, "marking read entries changes nothing");
});
