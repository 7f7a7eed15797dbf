//! What is new in an inbox since the last look.

use crate::fixture::{TestRoot, agent, message, overwrite_in_place, sleep_ms};
use protocol::message::{InboxEntry, Message};
use store::{Inbox, InboxCursor};

fn texts(entries: &[InboxEntry]) -> Vec<String> {
    entries.iter().map(|entry| entry.message.as_ref().map_or("?".to_owned(), |m| m.text.clone())).collect()
}

fn ground() -> (TestRoot, Inbox) {
    let ground = TestRoot::new();
    let inbox = ground.team.inbox(&agent("bob"));
    (ground, inbox)
}

fn fill(inbox: &Inbox, texts: impl IntoIterator<Item = usize>) {
    let messages: Vec<Message> = texts.into_iter().map(|n| message(&n.to_string())).collect();
    inbox.append_all(&messages).unwrap();
}

fn next(inbox: &Inbox, mark: &mut Option<InboxCursor>) -> Vec<String> {
    let (new, now) = inbox.read_since(mark.as_ref()).unwrap();
    let seen = now.entry_count() - new.len();
    assert!(new.iter().enumerate().all(|(at, entry)| entry.index == seen + at), "places in the file");
    *mark = Some(now);
    texts(&new)
}

#[test]
fn each_look_finds_what_came_since_the_last_one() {
    let (_ground, inbox) = ground();
    let mut mark = None;
    assert!(next(&inbox, &mut mark).is_empty());
    fill(&inbox, 0..3);
    assert_eq!(next(&inbox, &mut mark), ["0", "1", "2"]);
    assert!(next(&inbox, &mut mark).is_empty());
    fill(&inbox, 3..5);
    assert_eq!(next(&inbox, &mut mark), ["3", "4"]);
    sleep_ms(80);
    assert!(next(&inbox, &mut mark).is_empty());
    assert!(next(&inbox, &mut mark).is_empty(), "known by the file's identity now");
    fill(&inbox, 5..6);
    assert_eq!(next(&inbox, &mut mark), ["5"]);
    let mark = mark.unwrap();
    assert_eq!((mark.entry_count(), mark.unread_count(), mark.is_reset()), (6, 6, false));
}

#[test]
fn of_a_file_that_grew_only_the_new_end_is_read() {
    let (_ground, inbox) = ground();
    fill(&inbox, 0..50);
    let mut mark = None;
    next(&inbox, &mut mark);
    fill(&inbox, 50..52);
    // What is in front is spoilt, and nobody looks there.
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    overwrite_in_place(&inbox.path(), text.replacen("from", "\"\"\"\"", 1));
    assert_eq!(next(&inbox, &mut mark), ["50", "51"]);
    overwrite_in_place(&inbox.path(), text);
    assert!(next(&inbox, &mut mark).is_empty());
}

#[test]
fn marking_read_makes_nothing_new_and_is_counted() {
    let (_ground, inbox) = ground();
    fill(&inbox, 0..5);
    let mut mark = None;
    next(&inbox, &mut mark);
    inbox.mark_read(&inbox.read().unwrap()[1..]).unwrap();
    assert!(next(&inbox, &mut mark).is_empty());
    assert_eq!((mark.as_ref().unwrap().unread_count(), mark.as_ref().unwrap().is_reset()), (1, false));
    inbox.mark_all_read().unwrap();
    fill(&inbox, 5..6);
    assert_eq!(next(&inbox, &mut mark), ["5"]);
    assert_eq!((mark.as_ref().unwrap().unread_count(), mark.as_ref().unwrap().is_reset()), (1, false));
}

#[test]
fn what_was_removed_or_rewritten_begins_again() {
    let (_ground, inbox) = ground();
    fill(&inbox, 0..4);
    let whole = std::fs::read_to_string(inbox.path()).unwrap();
    let mut first = None;
    next(&inbox, &mut first);
    for (text, expected) in [
        ("[]".to_owned(), vec![]),
        (whole.replacen("\"0\"", "\"9\"", 1).replacen("\"3\"", "\"8\"", 1), vec!["9", "1", "2", "8"]),
        (r#"[{"from":"a","text":"t","timestamp":"x"},7]"#.to_owned(), vec!["t", "?"]),
    ] {
        overwrite_in_place(&inbox.path(), text);
        let mut mark = first.clone();
        assert_eq!(next(&inbox, &mut mark), expected);
        assert!(mark.as_ref().unwrap().is_reset());
        next(&inbox, &mut mark);
        assert!(!mark.unwrap().is_reset(), "said once");
    }
    std::fs::remove_file(inbox.path()).unwrap();
    let mut mark = first.clone();
    assert!(next(&inbox, &mut mark).is_empty());
    assert!(mark.unwrap().is_reset());
}

#[test]
fn others_spelling_and_halves_are_lived_with() {
    let (_ground, inbox) = ground();
    let compact = |count: usize| {
        let entries = (0..count).map(|n| format!(r#"{{"from":"a","text":"{n}🪜","timestamp":"x"}}"#));
        format!("[{}]\n", entries.collect::<Vec<_>>().join(","))
    };
    overwrite_in_place(&inbox.path(), compact(2));
    let mut mark = None;
    next(&inbox, &mut mark);
    overwrite_in_place(&inbox.path(), compact(4));
    assert_eq!(next(&inbox, &mut mark), ["2🪜", "3🪜"]);
    let whole = compact(6);
    overwrite_in_place(&inbox.path(), &whole[..whole.len() - 20]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            sleep_ms(300);
            overwrite_in_place(&inbox.path(), &whole);
        });
        assert_eq!(next(&inbox, &mut mark), ["4🪜", "5🪜"]);
    });
    overwrite_in_place(&inbox.path(), "[,]");
    assert!(inbox.read_since(mark.as_ref()).is_err());
}

/// Against a whole read each time.
#[test]
fn any_sequence_of_appends_and_marks_is_followed() {
    let (_ground, inbox) = ground();
    let (mut mark, mut random, mut seen) = (None, 7_u64, 0);
    for round in 0..120 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        match random >> 61 {
            0..4 => fill(&inbox, round * 10..round * 10 + (random >> 40) as usize % 3),
            4 | 5 => {
                let all = inbox.read().unwrap();
                let some = all.iter().filter(|entry| (random >> (entry.index % 50)) & 1 == 1).cloned();
                inbox.mark_read(&some.collect::<Vec<_>>()).unwrap();
            }
            _ => {}
        }
        let all = inbox.read().unwrap();
        assert_eq!(next(&inbox, &mut mark), texts(&all[seen..]), "round {round}");
        seen = all.len();
        let unread = all.iter().filter(|entry| entry.unread().is_some()).count();
        let mark = mark.as_ref().unwrap();
        assert_eq!((mark.entry_count(), mark.unread_count(), mark.is_reset()), (seen, unread, false));
    }
}

/// The texts of each look for a part, and of which of them began again.
fn parts(inbox: &Inbox, mut mark: Option<InboxCursor>) -> (Vec<Vec<String>>, InboxCursor) {
    let mut all = Vec::new();
    loop {
        let (new, next) = inbox.read_chunk_since(mark.as_ref()).unwrap();
        all.push(texts(&new));
        if !next.has_more() {
            return (all, next);
        }
        mark = Some(next);
    }
}

/// A text of so many KiB that begins with a number.
fn long_inbox(n: usize, size: usize) -> Message {
    message(&format!("{n}{}", "é\"\\🪜".repeat((size << 10) / 8)))
}

#[test]
fn a_long_inbox_is_looked_through_in_parts_and_nothing_is_left_out() {
    let (_ground, inbox) = ground();
    // Nearly as long as a part, and of which many are in one.
    let all: Vec<Message> = [1, 200, 2, 120, 3].iter().map(|size| long_inbox(*size, *size)).collect();
    inbox.append_all(&all).unwrap();
    fill(&inbox, 0..5_000);
    // Longer than a part, than two.
    let text = std::fs::read_to_string(inbox.path()).unwrap();
    overwrite_in_place(&inbox.path(), text.replacen("\"200", &format!("\"{}200", "x".repeat(900 << 10)), 1));
    let whole = texts(&inbox.read_since(None).unwrap().0);
    assert_eq!(whole, texts(&inbox.read().unwrap()));
    let (told, mark) = parts(&inbox, None);
    assert_eq!(told.concat(), whole);
    assert!(told.len() > 3 && told.iter().all(|part| part.len() < 3_000), "{}", told.len());
    assert_eq!((mark.entry_count(), mark.unread_count()), (5_005, 5_005));
    assert_eq!(inbox.fold(|count: &mut usize, _| *count += 1).unwrap(), 5_005);
    fill(&inbox, 0..5_000);
    let (more, mark) = parts(&inbox, Some(mark));
    assert_eq!((more.concat().len(), mark.entry_count(), mark.is_reset()), (5_000, 10_005, false));
}

#[test]
fn what_is_marked_or_removed_between_two_parts_is_told_once_or_begins_again() {
    let (_ground, inbox) = ground();
    fill(&inbox, 0..10_000);
    let (first, mark) = inbox.read_chunk_since(None).unwrap();
    assert!(mark.has_more());
    // All that stands behind moves.
    inbox.mark_read(&first[..100]).unwrap();
    let (rest, end) = parts(&inbox, Some(mark.clone()));
    assert_eq!([texts(&first), rest.concat()].concat(), texts(&inbox.read().unwrap()));
    assert_eq!((end.unread_count(), end.is_reset()), (9_900, false));
    let all = inbox.read().unwrap();
    let kept: Vec<&str> = all[50..].iter().map(|entry| entry.raw.as_str()).collect();
    overwrite_in_place(&inbox.path(), format!("[{}]", kept.join(",")));
    let mut mark = mark;
    let mut again = Vec::new();
    while mark.has_more() {
        let (new, next) = inbox.read_chunk_since(Some(&mark)).unwrap();
        assert!(next.is_reset(), "in each part of it");
        (again, mark) = ([again, texts(&new)].concat(), next);
    }
    assert_eq!(again, texts(&all[50..]));
    fill(&inbox, 7..8);
    let (new, next) = inbox.read_chunk_since(Some(&mark)).unwrap();
    assert_eq!((texts(&new), next.is_reset()), (vec!["7".to_owned()], false));
}

/// Spellings that are whole arrays, and some that are none, are the same to a look in parts and to one at the whole.
#[test]
fn a_part_takes_what_the_whole_takes() {
    let blank = " \n\t\r".repeat(100_000);
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
    let padded =
        [format!("[{blank}1{blank},{blank}2{blank}]{blank}"), format!("{blank}[]"), format!("[1{blank}")];
    // What is none is waited for, by each for itself.
    std::thread::scope(|scope| {
        for text in texts.into_iter().chain(padded.iter().map(String::as_str)) {
            scope.spawn(move || {
                let (_ground, inbox) = ground();
                overwrite_in_place(&inbox.path(), text);
                let part = inbox.read_chunk_since(None).map(|(entries, _)| entries).ok();
                assert_eq!(
                    part,
                    protocol::message::parse_inbox(text).ok(),
                    "{}",
                    &text[..text.len().min(30)]
                );
            });
        }
    });
}
