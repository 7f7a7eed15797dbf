//! Claims that follow a hint: as far as the files agree, and never further.

use crate::fixture::{TestRoot, agent, overwrite_in_place};
use protocol::control::NextTaskHint;
use protocol::id::TaskId;
use protocol::task::TaskStatus;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use store::{Error, Tasks};

/// So many that it pays to ask.
const MANY: u32 = 600;

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

/// As a foreign program writes one: truncated, and in place.
fn write(tasks: &Tasks, number: u32, more: &str) {
    let text = format!(r#"{{"id":"{number}","subject":"x",{more}}}"#);
    overwrite_in_place(&tasks.path().join(format!("{number}.json")), text);
}

fn long_list() -> (TestRoot, Tasks) {
    let ground = TestRoot::new();
    let tasks = ground.team.tasks();
    (1..=MANY).for_each(|number| write(&tasks, number, r#""status":"pending""#));
    (ground, tasks)
}

/// Says one after the other, and then that it can't tell.
fn hint_sequence(numbers: &[u32]) -> impl Fn() -> NextTaskHint {
    let left = RefCell::new(numbers.to_vec());
    move || {
        let mut left = left.borrow_mut();
        if left.is_empty() { NextTaskHint::Unknown } else { NextTaskHint::Task(id(left.remove(0))) }
    }
}

#[test]
fn what_is_told_is_taken_and_the_owner_hears_of_it() {
    let (ground, tasks) = long_list();
    let taken = tasks.claim_with_hint(&agent("ANN"), hint_sequence(&[500])).unwrap();
    assert_eq!((taken.id, taken.owner), (id(500), Some(agent("ann"))));
    assert_eq!(tasks.get(&id(500)).unwrap().status, TaskStatus::InProgress);
    assert_eq!(ground.team.inbox(&agent("ann")).read().unwrap().len(), 1);
    let taken = tasks.resume_or_claim(&agent("bob"), |_| false, hint_sequence(&[400])).unwrap();
    assert_eq!(taken.id, id(400));
    assert_eq!(ground.team.inbox(&agent("bob")).read().unwrap().len(), 1);
}

#[test]
fn what_does_not_hold_any_more_is_asked_for_again() {
    let (_ground, tasks) = long_list();
    write(&tasks, 11, r#""status":"in_progress","owner":"bob""#);
    write(&tasks, 12, r#""status":"pending","owner":"bob""#);
    write(&tasks, 13, r#""status":"completed""#);
    // Its blocker was over, and is opened again.
    write(&tasks, 14, r#""status":"pending","blockedBy":["15"]"#);
    write(&tasks, 15, r#""status":"in_progress","owner":"bob""#);
    write(&tasks, 16, r#""status":"pending","metadata":{"_internal":true}"#);
    std::fs::remove_file(tasks.path().join("17.json")).unwrap();
    overwrite_in_place(&tasks.path().join("18.json"), "{]");
    let before = tasks.list().unwrap();
    for which in [11, 12, 13, 14, 16, 17, 18] {
        assert_eq!(
            tasks.claim_with_hint(&agent("ann"), hint_sequence(&[which, 500 + which])).unwrap().id,
            id(500 + which)
        );
    }
    let after = tasks.list().unwrap();
    assert_eq!(before[..400], after[..400], "nothing else was taken, and nothing was written");
}

#[test]
fn who_can_not_tell_or_is_wrong_for_ever_is_asked_no_more() {
    let (_ground, tasks) = long_list();
    assert_eq!(tasks.claim_with_hint(&agent("ann"), || NextTaskHint::Unknown).unwrap().id, id(1));
    let asked = Cell::new(0);
    let wrong = || {
        asked.set(asked.get() + 1);
        NextTaskHint::Task(id(1))
    };
    assert_eq!(tasks.claim_with_hint(&agent("bob"), wrong).unwrap().id, id(2));
    assert!((2..100).contains(&asked.get()), "asked {} times", asked.get());
}

#[test]
fn that_there_is_nothing_is_said_by_the_files_and_believed_by_those_who_are_woken() {
    let (_ground, tasks) = long_list();
    assert_eq!(tasks.claim_with_hint(&agent("ann"), || NextTaskHint::NoTask).unwrap().id, id(1));
    let idle = tasks.resume_or_claim(&agent("bob"), |_| false, || NextTaskHint::NoTask);
    assert!(matches!(idle, Err(Error::NoTaskAvailable(_))));
    assert_eq!(tasks.get(&id(2)).unwrap().owner, None);
}

#[test]
fn what_was_left_is_taken_up_if_it_still_is_to_be() {
    let (ground, tasks) = long_list();
    let ann = agent("ann");
    write(&tasks, 31, r#""status":"in_progress","owner":"ann""#);
    write(&tasks, 32, r#""status":"in_progress","owner":"ann","metadata":{"failure":"exit 1"}"#);
    write(&tasks, 33, r#""status":"in_progress","owner":"ann","blockedBy":["34"]"#);
    let next = |told: &[u32]| tasks.resume_or_claim(&ann, |_| false, hint_sequence(told)).unwrap().id;
    assert_eq!(next(&[32, 33, 31]), id(31));
    assert!(ground.team.inbox(&ann).read().unwrap().is_empty(), "it has had it all along");
    assert_eq!(next(&[32, 33, 500]), id(500), "a failed one waits for whoever looks at it");
    let settled = |task: TaskId| task == id(31);
    assert_eq!(
        tasks.resume_or_claim(&ann, settled, hint_sequence(&[31])).unwrap().id,
        id(1),
        "what is settled is not"
    );
}

#[test]
fn of_a_short_list_nobody_is_asked() {
    let ground = TestRoot::new();
    let tasks = ground.team.tasks();
    (1..=20).for_each(|number| write(&tasks, number, r#""status":"pending""#));
    let asked = || panic!("a look is sooner done");
    assert_eq!(tasks.claim_with_hint(&agent("ann"), asked).unwrap().id, id(1));
    assert_eq!(tasks.resume_or_claim(&agent("bob"), |_| false, asked).unwrap().id, id(2));
}

#[test]
fn of_sixteen_who_are_told_the_same_each_has_one_and_all_the_lowest() {
    let (ground, _) = long_list();
    let claim = |number: usize| {
        let tasks = ground.reopen_team().tasks();
        let who = agent(if number.is_multiple_of(2) { "ann" } else { "bob" });
        let list = || tasks.list_cached().unwrap();
        let told =
            || protocol::task::next_task(&list(), &who).map_or(NextTaskHint::NoTask, NextTaskHint::Task);
        (0..4).map(|_| tasks.claim_with_hint(&who, told).unwrap().id.number()).collect::<Vec<_>>()
    };
    let taken: Vec<u32> = std::thread::scope(|scope| {
        let claimants: Vec<_> = (0..16).map(|number| scope.spawn(move || claim(number))).collect();
        claimants.into_iter().flat_map(|claimant| claimant.join().unwrap()).collect()
    });
    assert_eq!(taken.len(), 64);
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), (1..=64).collect());
}
