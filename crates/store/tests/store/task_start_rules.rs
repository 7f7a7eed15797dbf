//! Rules for starting tasks: blocked tasks are not started, and a new spawn resumes only tasks that
//! are in progress, unblocked and not failed.

use crate::test_root::{TestRoot, agent, overwrite_in_place};
use protocol::error_kind_and_report::ErrorKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus, dependents};
use serde_json::{Map, json};
use std::collections::BTreeSet;
use store::{Error, NewTask, TaskUpdate, Tasks};

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

fn add(tasks: &Tasks, blocked_by: &[u32]) -> Task {
    let blocked_by = blocked_by.iter().map(|number| id(*number)).collect();
    tasks.create(NewTask { blocked_by, ..NewTask::new("x", &agent("team-lead")) }).unwrap()
}

fn start() -> TaskUpdate {
    TaskUpdate { status: Some(TaskStatus::InProgress), ..TaskUpdate::default() }
}

fn assert_blocked_by_one(result: Result<Task, Error>) {
    match result {
        Err(Error::TaskBlocked { blockers, .. }) => assert_eq!(blockers, [id(1)]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_operation_starts_a_blocked_task() {
    let env = TestRoot::new();
    let (tasks, ann) = (env.team.tasks(), agent("ann"));
    add(&tasks, &[]);
    add(&tasks, &[1]);
    tasks.claim(Some(&id(1)), &agent("bob")).unwrap();
    let before = tasks.list().unwrap();
    assert_blocked_by_one(tasks.claim(Some(&id(2)), &ann));
    assert!(matches!(tasks.claim(None, &ann), Err(Error::NoTaskAvailable(_))));
    assert_blocked_by_one(tasks.update(&id(2), start(), &ann));
    assert_blocked_by_one(tasks.update(&id(2), TaskUpdate { owner: Some(ann.clone()), ..start() }, &ann));
    assert_eq!(tasks.list().unwrap(), before, "a rejected change changes no task");
    tasks.update(&id(2), TaskUpdate { owner: Some(ann.clone()), ..TaskUpdate::default() }, &ann).unwrap();
    assert!(
        matches!(tasks.claim(None, &ann), Err(Error::NoTaskAvailable(_))),
        "a blocked task of ann is not claimed"
    );
    assert_blocked_by_one(tasks.claim(Some(&id(2)), &ann));
}

/// A missing blocker can never be completed, so it must not block.
#[test]
fn a_missing_blocker_does_not_block() {
    let env = TestRoot::new();
    let (tasks, ann) = (env.team.tasks(), agent("ann"));
    add(&tasks, &[]);
    add(&tasks, &[1]);
    assert_blocked_by_one(tasks.claim(Some(&id(2)), &ann));
    std::fs::remove_file(tasks.path().join("1.json")).unwrap();
    let all = tasks.list().unwrap();
    assert!(all[0].blocked_by == [id(1)] && all[0].is_available(&all), "{all:?}");
    assert_eq!(tasks.claim(None, &ann).unwrap().id, id(2));
    tasks
        .update(&id(2), TaskUpdate { status: Some(TaskStatus::Pending), ..TaskUpdate::default() }, &ann)
        .unwrap();
    tasks.update(&id(2), start(), &ann).unwrap();
}

#[test]
fn a_task_with_an_open_blocker_is_not_started_again() {
    let env = TestRoot::new();
    let (tasks, ann) = (env.team.tasks(), agent("ann"));
    (0..3).for_each(|_| drop(add(&tasks, &[])));
    tasks.complete(&id(2), &ann).unwrap();
    tasks.claim(Some(&id(3)), &ann).unwrap();
    tasks.fail(&id(3), "exit 1").unwrap();
    for number in [2, 3] {
        let add_blocker = TaskUpdate { add_blocked_by: vec![id(1)], ..TaskUpdate::default() };
        assert_blocked_by_one(tasks.update(
            &id(number),
            TaskUpdate { add_blocked_by: vec![id(1)], ..start() },
            &ann,
        ));
        tasks.update(&id(number), add_blocker, &ann).unwrap();
        assert_blocked_by_one(tasks.update(&id(number), start(), &ann));
    }
    assert_eq!(tasks.get(&id(3)).unwrap().failure(), Some("exit 1"));
    tasks.complete(&id(1), &ann).unwrap();
    assert_eq!(tasks.update(&id(2), start(), &ann).unwrap().status, TaskStatus::InProgress);
}

#[test]
fn claiming_an_own_task_again_is_an_error() {
    let env = TestRoot::new();
    let (tasks, ann) = (env.team.tasks(), agent("ann"));
    add(&tasks, &[]);
    tasks.claim(None, &ann).unwrap();
    let error = tasks.claim(Some(&id(1)), &agent("ANN")).unwrap_err();
    assert_eq!(error.to_string(), "cannot claim task 1: ann has it already, and it is in progress");
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(matches!(tasks.claim(Some(&id(1)), &agent("bob")), Err(Error::TaskClaimed { .. })));
    tasks.complete(&id(1), &ann).unwrap();
    let error = tasks.claim(Some(&id(1)), &agent("bob")).unwrap_err();
    assert!(matches!(error, Error::InvalidTransition { .. }), "a completed task is not claimed: {error}");
}

#[test]
fn a_release_counts_the_attempt_and_removes_the_owner() {
    let env = TestRoot::new();
    let (tasks, ann, lead) = (env.team.tasks(), agent("ann"), agent("team-lead"));
    add(&tasks, &[]);
    assert_eq!(tasks.release(&id(1), &lead).unwrap().attempts(), 0, "the task was not in progress");
    tasks.claim(None, &ann).unwrap();
    tasks.fail(&id(1), "exit 1").unwrap();
    let released = tasks.release(&id(1), &lead).unwrap();
    assert_eq!((released.status.clone(), released.owner.clone()), (TaskStatus::Pending, None));
    assert_eq!((released.failure(), released.attempts()), (None, 1));
    tasks.claim(None, &ann).unwrap();
    let released = tasks.release(&id(1), &lead).unwrap();
    assert_eq!((released.owner.clone(), released.attempts()), (None, 2));
    tasks.complete(&id(1), &ann).unwrap();
    assert_eq!(
        tasks.release(&id(1), &lead).unwrap_err().kind(),
        ErrorKind::Refused,
        "a completed task is not released"
    );
}

#[test]
fn a_restarted_task_has_no_failure() {
    let env = TestRoot::new();
    let (tasks, ann) = (env.team.tasks(), agent("ann"));
    let text = r#"{"id":"1","subject":"x","status":"pending","metadata":{"failure":"exit 1","n":1e999}}"#;
    overwrite_in_place(&tasks.path().join("1.json"), text);
    let claimed = tasks.claim(None, &ann).unwrap();
    assert_eq!((claimed.failure(), claimed.attempts()), (None, 0));
    let text_after_claim = std::fs::read_to_string(tasks.path().join("1.json")).unwrap();
    assert!(text_after_claim.contains(r#""metadata":{"n":1e999}"#), "{text_after_claim}");
    tasks.fail(&id(1), "exit 2").unwrap();
    assert_eq!(tasks.update(&id(1), start(), &ann).unwrap().failure(), None);
    let failure = json!({"failure": "set by hand"}).as_object().cloned();
    let task = tasks.update(&id(1), TaskUpdate { metadata: failure, ..start() }, &ann).unwrap();
    assert_eq!(task.failure(), Some("set by hand"));
}

#[test]
fn a_new_spawn_resumes_the_task_of_the_old_one() {
    let env = TestRoot::new();
    let (tasks, ann) = (env.team.tasks(), agent("ann"));
    assert_eq!(tasks.resumable_task(&ann).unwrap(), None);
    tasks.create_internal(&ann, "do").unwrap();
    (0..4).for_each(|_| drop(add(&tasks, &[])));
    (0..3).for_each(|_| drop(tasks.claim(None, &ann).unwrap()));
    tasks.claim(None, &agent("bob")).unwrap();
    tasks.fail(&id(2), "exit 1").unwrap();
    let add_blocker = TaskUpdate { add_blocked_by: vec![id(5)], ..TaskUpdate::default() };
    tasks.update(&id(3), add_blocker, &ann).unwrap();
    let before = tasks.list().unwrap();
    assert_eq!(tasks.resumable_task(&agent("ANN")).unwrap().map(|task| task.id), Some(id(4)));
    assert_eq!(tasks.list().unwrap(), before, "no task is written");
    tasks.complete(&id(4), &ann).unwrap();
    assert_eq!(tasks.resumable_task(&ann).unwrap(), None, "one task has failed, one is blocked");
}

/// Adds random dependencies. An addition fails if and only if it would close a cycle.
#[test]
fn no_sequence_of_dependencies_closes_a_cycle() {
    for seed in 1..=6_u64 {
        let env = TestRoot::new();
        let tasks = env.team.tasks();
        (0..9).for_each(|_| drop(add(&tasks, &[])));
        let mut random = seed;
        for _ in 0..60 {
            let mut next = || {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                id((random >> 33) as u32 % 9 + 1)
            };
            let (blocker, blocked) = (next(), next());
            let would_close_cycle = transitive_dependents(&tasks.list().unwrap(), blocked).contains(&blocker);
            let update = TaskUpdate { add_blocks: vec![blocked], ..TaskUpdate::default() };
            match tasks.update(&blocker, update, &agent("ann")) {
                Ok(_) => assert!(!would_close_cycle, "seed {seed}: {blocker} → {blocked}"),
                Err(Error::DependencyCycle { path: cycle }) => {
                    assert!(would_close_cycle, "seed {seed}: {blocker} → {blocked}");
                    assert_real_cycle(&tasks.list().unwrap(), &cycle, (blocker, blocked));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// The task `from` and all tasks that it blocks directly or indirectly.
fn transitive_dependents(all: &[Task], from: TaskId) -> BTreeSet<TaskId> {
    let dependents_of = dependents(all);
    let (mut found, mut queue) = (BTreeSet::from([from]), vec![from]);
    while let Some(task) = queue.pop() {
        let next = dependents_of.get(&task).into_iter().flatten().filter(|next| found.insert(**next));
        queue.extend(next.copied().collect::<Vec<_>>());
    }
    found
}

/// Checks that each step of the cycle is an existing dependency or the rejected one.
fn assert_real_cycle(all: &[Task], cycle: &[TaskId], rejected: (TaskId, TaskId)) {
    let dependents_of = dependents(all);
    assert_eq!(cycle.first(), cycle.last());
    for step in cycle.windows(2) {
        let exists = dependents_of.get(&step[0]).is_some_and(|next| next.contains(&step[1]));
        assert!(exists || (step[0], step[1]) == rejected, "{cycle:?}");
    }
}

#[test]
fn merged_metadata_survives_claims_and_releases() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let metadata = json!({"command": "true", "key": "a"}).as_object().cloned();
    tasks.create(NewTask { metadata, ..NewTask::new("x", &agent("team-lead")) }).unwrap();
    for _ in 0..2 {
        tasks.claim(None, &agent("ann")).unwrap();
        tasks.fail(&id(1), "exit 1").unwrap();
        tasks.release(&id(1), &agent("team-lead")).unwrap();
    }
    let expected: Map<_, _> =
        json!({"command": "true", "key": "a", "attempts": 2}).as_object().cloned().unwrap();
    assert_eq!(tasks.get(&id(1)).unwrap().metadata, Some(expected));
}

#[test]
fn a_removed_dependency_no_longer_blocks() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    add(&tasks, &[]);
    add(&tasks, &[1]);
    let removal = TaskUpdate { remove_blocked_by: vec![id(1), id(9)], ..TaskUpdate::default() };
    tasks.update(&id(2), removal.clone(), &agent("ann")).unwrap();
    let dependencies =
        |task: u32| (tasks.get(&id(task)).unwrap().blocks, tasks.get(&id(task)).unwrap().blocked_by);
    assert_eq!((dependencies(1), dependencies(2)), ((vec![], vec![]), (vec![], vec![])));
    tasks.update(&id(2), removal, &agent("ann")).unwrap();
}
