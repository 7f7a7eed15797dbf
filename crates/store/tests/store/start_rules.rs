//! Rules for starting tasks: blocked tasks are not started, and failed or abandoned tasks are
//! resumed only as specified.

use crate::fixture::{TestRoot, agent, overwrite_in_place};
use protocol::error::ErrorKind;
use protocol::id::TaskId;
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
        let link = TaskUpdate { add_blocked_by: vec![id(1)], ..TaskUpdate::default() };
        assert_blocked_by_one(tasks.update(
            &id(number),
            TaskUpdate { add_blocked_by: vec![id(1)], ..start() },
            &ann,
        ));
        tasks.update(&id(number), link, &ann).unwrap();
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
fn a_release_counts_the_attempt_and_may_keep_an_owner() {
    let env = TestRoot::new();
    let (tasks, ann, lead) = (env.team.tasks(), agent("ann"), agent("team-lead"));
    add(&tasks, &[]);
    assert_eq!(tasks.release(&id(1), &lead).unwrap().attempts(), 0, "the task was not in progress");
    tasks.claim(None, &ann).unwrap();
    tasks.fail(&id(1), "exit 1").unwrap();
    let released = tasks.release_to(&id(1), &agent("ANN"), &lead).unwrap();
    assert_eq!((released.status.clone(), released.owner.clone()), (TaskStatus::Pending, Some(ann.clone())));
    assert_eq!((released.failure(), released.attempts()), (None, 1));
    assert!(matches!(tasks.claim(None, &agent("bob")), Err(Error::NoTaskAvailable(_))), "the task is ann's");
    tasks.claim(None, &ann).unwrap();
    let released = tasks.release(&id(1), &lead).unwrap();
    assert_eq!((released.owner.clone(), released.attempts()), (None, 2));
    assert_eq!(tasks.release_to(&id(1), &agent("zed"), &lead).unwrap_err().kind(), ErrorKind::NotFound);
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
    let kept = std::fs::read_to_string(tasks.path().join("1.json")).unwrap();
    assert!(kept.contains(r#""metadata":{"n":1e999}"#), "{kept}");
    tasks.fail(&id(1), "exit 2").unwrap();
    assert_eq!(tasks.update(&id(1), start(), &ann).unwrap().failure(), None);
    let failure = json!({"failure": "told by hand"}).as_object().cloned();
    let by_hand = tasks.update(&id(1), TaskUpdate { metadata: failure, ..start() }, &ann).unwrap();
    assert_eq!(by_hand.failure(), Some("told by hand"));
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
    let link = TaskUpdate { add_blocked_by: vec![id(5)], ..TaskUpdate::default() };
    tasks.update(&id(3), link, &ann).unwrap();
    let before = tasks.list().unwrap();
    assert_eq!(tasks.resumable_task(&agent("ANN")).unwrap().map(|task| task.id), Some(id(4)));
    assert_eq!(tasks.list().unwrap(), before, "no task is written");
    tasks.complete(&id(4), &ann).unwrap();
    assert_eq!(tasks.resumable_task(&ann).unwrap(), None, "one task has failed, one is blocked");
}

/// Adds random dependencies. An addition must fail exactly if it would close a cycle.
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
            let closes = reachable(&tasks.list().unwrap(), blocked).contains(&blocker);
            let update = TaskUpdate { add_blocks: vec![blocked], ..TaskUpdate::default() };
            match tasks.update(&blocker, update, &agent("ann")) {
                Ok(_) => assert!(!closes, "seed {seed}: {blocker} → {blocked}"),
                Err(Error::DependencyCycle { path: cycle }) => {
                    assert!(closes, "seed {seed}: {blocker} → {blocked}");
                    assert_real_cycle(&tasks.list().unwrap(), &cycle, (blocker, blocked));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// All tasks that `from` blocks, directly or not, and `from`.
fn reachable(all: &[Task], from: TaskId) -> BTreeSet<TaskId> {
    let waiting = dependents(all);
    let (mut found, mut open) = (BTreeSet::from([from]), vec![from]);
    while let Some(at) = open.pop() {
        let next = waiting.get(&at).into_iter().flatten().filter(|next| found.insert(**next));
        open.extend(next.copied().collect::<Vec<_>>());
    }
    found
}

/// Checks that each step of the cycle is an existing dependency or the rejected one.
fn assert_real_cycle(all: &[Task], cycle: &[TaskId], refused: (TaskId, TaskId)) {
    let waiting = dependents(all);
    assert_eq!(cycle.first(), cycle.last());
    for step in cycle.windows(2) {
        let there = waiting.get(&step[0]).is_some_and(|next| next.contains(&step[1]));
        assert!(there || (step[0], step[1]) == refused, "{cycle:?}");
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
fn removed_dependency_blocks_no_more() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    add(&tasks, &[]);
    add(&tasks, &[1]);
    let cut = TaskUpdate { remove_blocked_by: vec![id(1), id(9)], ..TaskUpdate::default() };
    tasks.update(&id(2), cut.clone(), &agent("ann")).unwrap();
    let links = |task: u32| (tasks.get(&id(task)).unwrap().blocks, tasks.get(&id(task)).unwrap().blocked_by);
    assert_eq!((links(1), links(2)), ((vec![], vec![]), (vec![], vec![])));
    tasks.update(&id(2), cut, &agent("ann")).unwrap();
}
