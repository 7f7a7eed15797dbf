//! Claims with hints: the store checks each hint against the task files.

use crate::test_root::{TestRoot, agent, overwrite_in_place};
use protocol::control_socket::NextTaskHint;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use store::{Error, Tasks};

/// Length of a list that is long enough for the store to request hints.
const LONG_LIST: u32 = 600;

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

/// Writes a task with these JSON fields in place, like a foreign program.
fn write_task(tasks: &Tasks, number: u32, fields: &str) {
    let text = format!(r#"{{"id":"{number}","subject":"x",{fields}}}"#);
    overwrite_in_place(&tasks.path().join(format!("{number}.json")), text);
}

fn long_list() -> (TestRoot, Tasks) {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    (1..=LONG_LIST).for_each(|number| write_task(&tasks, number, r#""status":"pending""#));
    (env, tasks)
}

/// A hint source that returns these tasks one after the other, and then `Unknown`.
fn hint_sequence(numbers: &[u32]) -> impl Fn() -> NextTaskHint {
    let remaining = RefCell::new(numbers.to_vec());
    move || {
        let mut remaining = remaining.borrow_mut();
        if remaining.is_empty() { NextTaskHint::Unknown } else { NextTaskHint::Task(id(remaining.remove(0))) }
    }
}

#[test]
fn a_hinted_task_is_claimed_and_the_owner_notified() {
    let (env, tasks) = long_list();
    let task = tasks.claim_with_hint(&agent("ANN"), hint_sequence(&[500])).unwrap();
    assert_eq!((task.id, task.owner), (id(500), Some(agent("ann"))));
    assert_eq!(tasks.get(&id(500)).unwrap().status, TaskStatus::InProgress);
    assert_eq!(env.team.inbox(&agent("ann")).read().unwrap().len(), 1);
    let task = tasks.resume_or_claim(&agent("bob"), |_| false, hint_sequence(&[400])).unwrap();
    assert_eq!(task.id, id(400));
    assert_eq!(env.team.inbox(&agent("bob")).read().unwrap().len(), 1);
}

#[test]
fn an_outdated_hint_is_requested_again() {
    let (_env, tasks) = long_list();
    write_task(&tasks, 11, r#""status":"in_progress","owner":"bob""#);
    write_task(&tasks, 12, r#""status":"pending","owner":"bob""#);
    write_task(&tasks, 13, r#""status":"completed""#);
    // The blocker of task 14 is in progress.
    write_task(&tasks, 14, r#""status":"pending","blockedBy":["15"]"#);
    write_task(&tasks, 15, r#""status":"in_progress","owner":"bob""#);
    write_task(&tasks, 16, r#""status":"pending","metadata":{"_internal":true}"#);
    std::fs::remove_file(tasks.path().join("17.json")).unwrap();
    overwrite_in_place(&tasks.path().join("18.json"), "{]");
    let before = tasks.list().unwrap();
    for number in [11, 12, 13, 14, 16, 17, 18] {
        assert_eq!(
            tasks.claim_with_hint(&agent("ann"), hint_sequence(&[number, 500 + number])).unwrap().id,
            id(500 + number)
        );
    }
    let after = tasks.list().unwrap();
    assert_eq!(before[..400], after[..400], "no other task was changed");
}

#[test]
fn no_more_hints_are_requested_after_unknown_or_many_outdated_hints() {
    let (_env, tasks) = long_list();
    assert_eq!(tasks.claim_with_hint(&agent("ann"), || NextTaskHint::Unknown).unwrap().id, id(1));
    let request_count = Cell::new(0);
    let outdated_hint = || {
        request_count.set(request_count.get() + 1);
        NextTaskHint::Task(id(1))
    };
    assert_eq!(tasks.claim_with_hint(&agent("bob"), outdated_hint).unwrap().id, id(2));
    assert!((2..100).contains(&request_count.get()), "{} hints are requested", request_count.get());
}

#[test]
fn a_hint_of_no_task_is_checked_for_claims_and_not_for_woken_agents() {
    let (_env, tasks) = long_list();
    assert_eq!(tasks.claim_with_hint(&agent("ann"), || NextTaskHint::NoTask).unwrap().id, id(1));
    let result = tasks.resume_or_claim(&agent("bob"), |_| false, || NextTaskHint::NoTask);
    assert!(matches!(result, Err(Error::NoTaskAvailable(_))));
    assert_eq!(tasks.get(&id(2)).unwrap().owner, None);
}

#[test]
fn a_task_in_progress_is_resumed_unless_skipped() {
    let (env, tasks) = long_list();
    let ann = agent("ann");
    write_task(&tasks, 31, r#""status":"in_progress","owner":"ann""#);
    write_task(&tasks, 32, r#""status":"in_progress","owner":"ann","metadata":{"failure":"exit 1"}"#);
    write_task(&tasks, 33, r#""status":"in_progress","owner":"ann","blockedBy":["34"]"#);
    let resume_next = |hint: &[u32]| tasks.resume_or_claim(&ann, |_| false, hint_sequence(hint)).unwrap().id;
    assert_eq!(resume_next(&[32, 33, 31]), id(31));
    assert!(env.team.inbox(&ann).read().unwrap().is_empty(), "the owner is not notified of a resumed task");
    assert_eq!(resume_next(&[32, 33, 500]), id(500), "a failed task is not resumed");
    let is_skipped = |task: TaskId| task == id(31);
    assert_eq!(
        tasks.resume_or_claim(&ann, is_skipped, hint_sequence(&[31])).unwrap().id,
        id(1),
        "a skipped task is not resumed"
    );
}

#[test]
fn no_hint_is_requested_for_a_short_list() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    (1..=20).for_each(|number| write_task(&tasks, number, r#""status":"pending""#));
    let hint = || panic!("a short list needs no hint");
    assert_eq!(tasks.claim_with_hint(&agent("ann"), hint).unwrap().id, id(1));
    assert_eq!(tasks.resume_or_claim(&agent("bob"), |_| false, hint).unwrap().id, id(2));
}

#[test]
fn sixteen_claimants_with_the_same_hints_get_the_lowest_tasks() {
    let (env, _) = long_list();
    let claim = |number: usize| {
        let tasks = env.reopen_team().tasks();
        let owner = agent(if number.is_multiple_of(2) { "ann" } else { "bob" });
        let list = || tasks.list_cached().unwrap();
        let hint =
            || protocol::task::next_task(&list(), &owner).map_or(NextTaskHint::NoTask, NextTaskHint::Task);
        (0..4).map(|_| tasks.claim_with_hint(&owner, hint).unwrap().id.number()).collect::<Vec<_>>()
    };
    let numbers: Vec<u32> = std::thread::scope(|scope| {
        let claimants: Vec<_> = (0..16).map(|number| scope.spawn(move || claim(number))).collect();
        claimants.into_iter().flat_map(|claimant| claimant.join().unwrap()).collect()
    });
    assert_eq!(numbers.len(), 64);
    assert_eq!(numbers.into_iter().collect::<BTreeSet<_>>(), (1..=64).collect());
}
