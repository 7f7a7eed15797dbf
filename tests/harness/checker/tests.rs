//! The checker is worth what it catches: a history in which all is well, and sixteen faults put into it.

use super::{Rule, check};
use crate::faults::each_is_caught;
use crate::history::{Deed, History, Id, Look, Seen, What};

fn id(sender: &str, seq: u64) -> Id {
    Id { sender: sender.to_owned(), seq }
}

/// Two senders and two inboxes: a/0, b/0, a/1 in ann's, of which the first is done; b/1 in bob's; b/2 was refused, and
/// of b/3 nobody knows.
fn well() -> History {
    let ann = || "ann".to_owned();
    let deeds = [
        (10, What::Sends { id: id("a", 0), to: ann() }),
        (20, What::Stored { id: id("a", 0) }),
        (25, What::Sends { id: id("b", 0), to: ann() }),
        (30, What::Sends { id: id("a", 1), to: ann() }),
        (35, What::Given { id: id("a", 0), by: ann() }),
        (36, What::Killed { by: ann() }),
        (37, What::Given { id: id("a", 0), by: ann() }),
        (38, What::Done { id: id("a", 0), by: ann() }),
        (40, What::Stored { id: id("b", 0) }),
        (45, What::Stored { id: id("a", 1) }),
        (50, What::Sends { id: id("b", 1), to: "bob".to_owned() }),
        (55, What::Stored { id: id("b", 1) }),
        (60, What::Sends { id: id("b", 2), to: "bob".to_owned() }),
        (65, What::Refused { id: id("b", 2) }),
        (70, What::Sends { id: id("b", 3), to: "bob".to_owned() }),
        (80, What::Claimed { task: 1, round: 0, by: ann() }),
        (81, What::Claimed { task: 2, round: 0, by: "bob".to_owned() }),
        (82, What::Claimed { task: 1, round: 1, by: "bob".to_owned() }),
    ];
    let seen = |id: Id, read: bool| Seen { id, read, whole: true };
    let look = |at: u64, inbox: &str, messages: Vec<Seen>| Look { at, inbox: inbox.to_owned(), messages };
    History {
        deeds: deeds.map(|(at, what)| Deed { at, what }).to_vec(),
        looks: vec![
            look(22, "ann", vec![seen(id("a", 0), false)]),
            look(39, "ann", vec![seen(id("a", 0), true)]),
            look(90, "ann", vec![seen(id("a", 0), true), seen(id("b", 0), false), seen(id("a", 1), false)]),
            look(91, "bob", vec![seen(id("b", 1), false)]),
        ],
        members: vec![ann(), "bob".to_owned()],
        living: vec!["bob".to_owned(), ann()],
    }
}

fn broken(history: &History) -> Vec<Rule> {
    let mut rules: Vec<Rule> = check(history).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn a_history_in_which_all_is_well_breaks_no_rule() {
    assert_eq!(check(&well()), []);
}

#[test]
fn each_of_sixteen_faults_is_caught_by_the_rule_it_breaks() {
    assert_eq!(each_is_caught(&well()), 16);
    let mut history = well();
    history.members.push("eve".into());
    assert_eq!(broken(&history), [Rule::Roster], "a ghost on the team");
}

#[test]
fn a_text_says_whose_it_is_and_whether_it_is_whole() {
    let text = id("a", 7).text("so/it \u{2028} is");
    assert_eq!(Id::of(&text), Some((id("a", 7), true)));
    assert_eq!(Id::of(&text.replace("is", "was")), Some((id("a", 7), false)));
    assert_eq!(Id::of("hello"), None);
}

#[test]
fn a_diary_is_read_as_it_was_written_and_half_a_line_is_none() {
    let mut expected: Vec<What> = well().deeds.into_iter().map(|deed| deed.what).collect();
    let path = tempfile::NamedTempFile::new().unwrap();
    let mut diary = crate::history::Diary::open(path.path()).unwrap();
    expected.iter().for_each(|what| diary.note(what).unwrap());
    let text = std::fs::read_to_string(path.path()).unwrap();
    let mut history = History::default();
    history.read(&text[..text.len() - 1]);
    expected.pop();
    assert_eq!(history.deeds.into_iter().map(|deed| deed.what).collect::<Vec<_>>(), expected);
}
