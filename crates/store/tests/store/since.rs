//! What is new in an inbox since the last look.

use crate::fixture::{Ground, agent, delay, message, put};
use protocol::message::{Entry, Message};
use store::{Inbox, Mark};

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.message.as_ref().map_or("?".to_owned(), |m| m.text.clone())).collect()
}

fn ground() -> (Ground, Inbox) {
    let ground = Ground::new();
    let inbox = ground.team.inbox(&agent("bob"));
    (ground, inbox)
}

fn fill(inbox: &Inbox, texts: impl IntoIterator<Item = usize>) {
    let messages: Vec<Message> = texts.into_iter().map(|n| message(&n.to_string())).collect();
    inbox.append_all(&messages).unwrap();
}

fn next(inbox: &Inbox, mark: &mut Option<Mark>) -> Vec<String> {
    let (new, now) = inbox.since(mark.as_ref()).unwrap();
    let seen = now.entries() - new.len();
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
    delay(80);
    assert!(next(&inbox, &mut mark).is_empty());
    assert!(next(&inbox, &mut mark).is_empty(), "known by the file's identity now");
    fill(&inbox, 5..6);
    assert_eq!(next(&inbox, &mut mark), ["5"]);
    let mark = mark.unwrap();
    assert_eq!((mark.entries(), mark.unread(), mark.began_again()), (6, 6, false));
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
    put(&inbox.path(), text.replacen("from", "\"\"\"\"", 1));
    assert_eq!(next(&inbox, &mut mark), ["50", "51"]);
    put(&inbox.path(), text);
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
    assert_eq!((mark.as_ref().unwrap().unread(), mark.as_ref().unwrap().began_again()), (1, false));
    inbox.retire().unwrap();
    fill(&inbox, 5..6);
    assert_eq!(next(&inbox, &mut mark), ["5"]);
    assert_eq!((mark.as_ref().unwrap().unread(), mark.as_ref().unwrap().began_again()), (1, false));
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
        put(&inbox.path(), text);
        let mut mark = first.clone();
        assert_eq!(next(&inbox, &mut mark), expected);
        assert!(mark.as_ref().unwrap().began_again());
        next(&inbox, &mut mark);
        assert!(!mark.unwrap().began_again(), "said once");
    }
    std::fs::remove_file(inbox.path()).unwrap();
    let mut mark = first.clone();
    assert!(next(&inbox, &mut mark).is_empty());
    assert!(mark.unwrap().began_again());
}

#[test]
fn others_spelling_and_halves_are_lived_with() {
    let (_ground, inbox) = ground();
    let compact = |count: usize| {
        let entries = (0..count).map(|n| format!(r#"{{"from":"a","text":"{n}🪜","timestamp":"x"}}"#));
        format!("[{}]\n", entries.collect::<Vec<_>>().join(","))
    };
    put(&inbox.path(), compact(2));
    let mut mark = None;
    next(&inbox, &mut mark);
    put(&inbox.path(), compact(4));
    assert_eq!(next(&inbox, &mut mark), ["2🪜", "3🪜"]);
    let whole = compact(6);
    put(&inbox.path(), &whole[..whole.len() - 20]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            delay(300);
            put(&inbox.path(), &whole);
        });
        assert_eq!(next(&inbox, &mut mark), ["4🪜", "5🪜"]);
    });
    put(&inbox.path(), "[,]");
    assert!(inbox.since(mark.as_ref()).is_err());
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
        assert_eq!((mark.entries(), mark.unread(), mark.began_again()), (seen, unread, false));
    }
}
