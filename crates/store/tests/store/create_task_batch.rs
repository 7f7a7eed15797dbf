//! Batches of tasks: either all tasks are created or none, and each task file has its dependencies
//! from the start.

use crate::test_root::{TestRoot, agent, list_dir};
use protocol::error_kind_and_report::ErrorKind;
use protocol::inbox_message_payload::Payload;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{BatchTask, Error, NewTask, Tasks};

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

fn batch_task(subject: &str, blockers: &[usize]) -> BatchTask {
    BatchTask { task: NewTask::new(subject, &agent("team-lead")), blocked_by_index: blockers.to_vec() }
}

/// A chain in which the next two tasks block each task. So the order of ids is the reverse of the
/// order of work.
fn reversed_chain(count: usize) -> Vec<BatchTask> {
    let blockers = |index: usize| (index + 1..count.min(index + 3)).collect::<Vec<_>>();
    (0..count).map(|index| batch_task(&format!("task {index}"), &blockers(index))).collect()
}

fn available_tasks(tasks: &Tasks) -> Vec<TaskId> {
    let all = tasks.list().unwrap();
    all.iter().filter(|task| task.is_available(&all)).map(|task| task.id).collect()
}

/// Checks that a rejected batch created no task and used no id.
fn assert_nothing_created(env: &TestRoot) {
    let tasks = env.team.tasks();
    assert_eq!(list_dir(&tasks.path()), [tasks.path().join(".lock")]);
    assert_eq!(tasks.create(NewTask::new("next", &agent("ann"))).unwrap().id, id(1));
}

#[test]
fn ids_ascend_in_the_given_order_and_both_files_store_a_dependency() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    tasks.create(NewTask::new("existing", &agent("ann"))).unwrap();
    let new_tasks = tasks
        .create_all(vec![batch_task("report", &[2, 1, 2]), batch_task("a", &[]), batch_task("b", &[1])])
        .unwrap();
    assert_eq!(new_tasks, tasks.list().unwrap()[1..]);
    let dependencies = |task: &Task| (task.id, task.blocked_by.clone(), task.blocks.clone());
    let expected = [
        (id(2), vec![id(4), id(3)], vec![]),
        (id(3), vec![], vec![id(2), id(4)]),
        (id(4), vec![id(3)], vec![id(2)]),
    ];
    assert_eq!(new_tasks.iter().map(dependencies).collect::<Vec<_>>(), expected);
    assert_eq!(available_tasks(&tasks), [id(1), id(3)]);
    assert!(tasks.create_all(Vec::new()).unwrap().is_empty());
}

#[test]
fn a_thousand_tasks_are_created_and_none_is_available_before_its_blockers() {
    let env = TestRoot::new();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let tasks = env.reopen_team().tasks();
            while !is_done.load(Ordering::Relaxed) {
                assert!(
                    available_tasks(&tasks).iter().all(|task| *task == id(1000)),
                    "a task is available before the file of its blocker exists"
                );
            }
        });
        env.team.tasks().create_all(reversed_chain(1000)).unwrap();
        is_done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    let tasks = env.team.tasks();
    assert_eq!(tasks.list().unwrap().len(), 1000);
    assert_eq!(available_tasks(&tasks), [id(1000)]);
}

/// A crash in the middle of a batch has the same effect: the ids are reserved, and some task files
/// are missing.
#[test]
fn ids_of_a_batch_are_never_reused() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    tasks.create_all(reversed_chain(5)).unwrap();
    for number in 1..=5 {
        std::fs::remove_file(tasks.path().join(format!("{number}.json"))).unwrap();
    }
    assert_eq!(tasks.create(NewTask::new("next", &agent("ann"))).unwrap().id, id(6));
}

#[test]
fn a_batch_with_a_cycle_is_rejected_and_the_error_names_the_cycle() {
    let env = TestRoot::new();
    let batch =
        vec![batch_task("a", &[]), batch_task("b", &[0, 3]), batch_task("c", &[1]), batch_task("d", &[2])];
    let error = env.team.tasks().create_all(batch).unwrap_err();
    assert_eq!(error.to_string(), r#"cannot create the tasks: "b" → "c" → "d" → "b" is a circle"#);
    assert_eq!(error.kind(), ErrorKind::Refused);
    let error = env.team.tasks().create_all(vec![batch_task("a", &[0])]).unwrap_err();
    assert_eq!(error.to_string(), r#"cannot create the tasks: "a" → "a" is a circle"#);
    assert_nothing_created(&env);
}

#[test]
fn a_batch_with_an_invalid_index_is_rejected() {
    let env = TestRoot::new();
    let error = env.team.tasks().create_all(vec![batch_task("a", &[]), batch_task("b", &[2])]).unwrap_err();
    assert!(matches!(error, Error::NoSuchBatchIndex { index: 2, count: 2, .. }), "{error}");
    assert_nothing_created(&env);
}

#[test]
fn a_batch_with_an_owner_that_is_not_a_member_is_rejected() {
    let env = TestRoot::new();
    let task = NewTask { owner: Some(agent("zed")), ..NewTask::new("b", &agent("team-lead")) };
    let error = env
        .team
        .tasks()
        .create_all(vec![batch_task("a", &[]), BatchTask { task, blocked_by_index: vec![] }])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_nothing_created(&env);
}

#[test]
fn a_cycle_through_existing_tasks_is_rejected() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    tasks.create_all(vec![batch_task("x", &[]), batch_task("y", &[0])]).unwrap();
    let before = tasks.list().unwrap();
    let mut new = vec![batch_task("a", &[1]), batch_task("b", &[])];
    new[0].task.blocks = vec![id(1)];
    new[1].task.blocked_by = vec![id(2)];
    let Err(Error::BatchCycle { path }) = tasks.create_all(new.clone()) else {
        panic!("the cycle is not rejected")
    };
    assert_eq!(path, ["1", "2", "\"b\"", "\"a\"", "1"]);
    new[1].task.blocked_by = vec![id(9)];
    assert!(matches!(tasks.create_all(new.clone()), Err(Error::NoSuchTask { .. })));
    assert_eq!(tasks.list().unwrap(), before);
    new[1].task.blocked_by = vec![];
    let new_tasks = tasks.create_all(new).unwrap();
    assert_eq!(
        (new_tasks[0].id, &new_tasks[0].blocks, &new_tasks[0].blocked_by),
        (id(3), &vec![id(1)], &vec![id(4)])
    );
    assert_eq!(tasks.get(&id(1)).unwrap().blocked_by, [id(3)]);
    assert_eq!(available_tasks(&tasks), [id(4)]);
}

#[test]
fn each_owner_is_notified_of_all_its_tasks_in_order() {
    let env = TestRoot::new();
    let batch = (0..20).map(|index| {
        let owner = Some(agent(if index % 2 == 0 { "ann" } else { "BOB" }));
        BatchTask {
            task: NewTask { owner, ..batch_task(&index.to_string(), &[]).task },
            blocked_by_index: vec![],
        }
    });
    env.team.tasks().create_all(batch.collect()).unwrap();
    for (name, first) in [("ann", 1), ("bob", 2)] {
        let numbers: Vec<u32> =
            env.team.inbox(&agent(name)).read().unwrap().iter().map(assigned_task_number).collect();
        assert_eq!(numbers, (first..=20).step_by(2).collect::<Vec<_>>(), "{name}");
    }
}

fn assigned_task_number(entry: &protocol::inbox_file::InboxEntry) -> u32 {
    match Payload::parse(&entry.message.as_ref().unwrap().text) {
        Some(Payload::TaskAssignment(assignment)) => assignment.task_id.number(),
        other => panic!("{other:?}"),
    }
}
