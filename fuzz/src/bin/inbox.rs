//! An inbox. What parses can be changed, and a change touches nothing but what it names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use protocol::message::{InboxEntry, Message, parse_inbox, with_marked_read, with_message};

fn raws(entries: &[InboxEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.raw.as_str()).collect()
}

fuzz_target!(|text: &str| {
    let Ok(before) = parse_inbox(text) else {
        assert!(with_marked_read(text, &[0]).is_err(), "what does not parse is not rewritten");
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
    let longer = with_message(text, &message).expect("an inbox takes a message");
    let after = parse_inbox(&longer).expect("and is one still");
    let (last, rest) = after.split_last().expect("with one more");
    assert_eq!(raws(rest), raws(&before));
    assert_eq!(last.message.as_ref(), Ok(&message));

    let odd: Vec<usize> = (0..before.len()).filter(|index| index % 2 == 1).collect();
    let marked = with_marked_read(text, &odd).expect("what parses can be marked");
    let after = parse_inbox(&marked).expect("and is an inbox still");
    assert_eq!(after.len(), before.len());
    for (old, new) in before.iter().zip(&after) {
        match &old.message {
            _ if old.index % 2 == 0 => assert_eq!(old.raw, new.raw),
            Ok(message) => assert_eq!(new.message, Ok(Message { read: true, ..message.clone() })),
            Err(_) => {}
        }
    }
    assert_eq!(with_marked_read(&marked, &odd).expect("twice too"), marked, "marking is done once");
});
