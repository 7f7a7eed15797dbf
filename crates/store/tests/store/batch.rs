//! Tasks that are made together: all or none, linked from their first moment.

use crate::fixture::{TestRoot, agent, list_dir};
use protocol::error::ErrorKind;
use protocol::id::TaskId;
use protocol::payload::Payload;
use protocol::task::Task;
use std::sync::atomic::{AtomicBool, Ordering};
use store::{BatchTask, Error, NewTask, Tasks};

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

fn plan(subject: &str, after: &[usize]) -> BatchTask {
    BatchTask { task: NewTask::new(subject, &agent("team-lead")), blocked_by_index: after.to_vec() }
}

/// Each waits for the two after it, down to the last: the order of ids is against the order of work.
fn reversed_chain(count: usize) -> Vec<BatchTask> {
    let after = |at: usize| (at + 1..count.min(at + 3)).collect::<Vec<_>>();
    (0..count).map(|at| plan(&format!("task {at}"), &after(at))).collect()
}

fn available(tasks: &Tasks) -> Vec<TaskId> {
    let all = tasks.list().unwrap();
    all.iter().filter(|task| task.is_available(&all)).map(|task| task.id).collect()
}

/// Nothing of a refused batch is there, its ids neither.
fn assert_nothing_created(ground: &TestRoot) {
    let tasks = ground.team.tasks();
    assert_eq!(list_dir(&tasks.path()), [tasks.path().join(".lock")]);
    assert_eq!(tasks.create(NewTask::new("next", &agent("ann"))).unwrap().id, id(1));
}

#[test]
fn ids_ascend_in_the_order_given_and_links_have_two_ends() {
    let ground = TestRoot::new();
    let tasks = ground.team.tasks();
    tasks.create(NewTask::new("there before", &agent("ann"))).unwrap();
    let made = tasks.create_all(vec![plan("report", &[2, 1, 2]), plan("a", &[]), plan("b", &[1])]).unwrap();
    assert_eq!(made, tasks.list().unwrap()[1..]);
    let links = |task: &Task| (task.id, task.blocked_by.clone(), task.blocks.clone());
    let expected = [
        (id(2), vec![id(4), id(3)], vec![]),
        (id(3), vec![], vec![id(2), id(4)]),
        (id(4), vec![id(3)], vec![id(2)]),
    ];
    assert_eq!(made.iter().map(links).collect::<Vec<_>>(), expected);
    assert_eq!(available(&tasks), [id(1), id(3)]);
    assert!(tasks.create_all(Vec::new()).unwrap().is_empty());
}

#[test]
fn a_thousand_are_made_and_none_can_be_taken_before_its_turn() {
    let ground = TestRoot::new();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let tasks = ground.reopen_team().tasks();
            while !over.load(Ordering::Relaxed) {
                assert!(available(&tasks).iter().all(|task| *task == id(1000)), "its blockers are missing");
            }
        });
        ground.team.tasks().create_all(reversed_chain(1000)).unwrap();
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    let tasks = ground.team.tasks();
    assert_eq!(tasks.list().unwrap().len(), 1000);
    assert_eq!(available(&tasks), [id(1000)]);
}

/// A crash in the middle is this, too: the ids were promised, and some files are not there.
#[test]
fn ids_of_a_batch_are_not_given_again() {
    let ground = TestRoot::new();
    let tasks = ground.team.tasks();
    tasks.create_all(reversed_chain(5)).unwrap();
    for number in 1..=5 {
        std::fs::remove_file(tasks.path().join(format!("{number}.json"))).unwrap();
    }
    assert_eq!(tasks.create(NewTask::new("next", &agent("ann"))).unwrap().id, id(6));
}

#[test]
fn a_circle_is_refused_with_its_way_before_anything_is_made() {
    let ground = TestRoot::new();
    let planned = vec![plan("a", &[]), plan("b", &[0, 3]), plan("c", &[1]), plan("d", &[2])];
    let error = ground.team.tasks().create_all(planned).unwrap_err();
    assert_eq!(error.to_string(), r#"cannot create the tasks: "b" → "c" → "d" → "b" is a circle"#);
    assert_eq!(error.kind(), ErrorKind::Refused);
    let error = ground.team.tasks().create_all(vec![plan("a", &[0])]).unwrap_err();
    assert_eq!(error.to_string(), r#"cannot create the tasks: "a" → "a" is a circle"#);
    assert_nothing_created(&ground);
}

#[test]
fn one_that_waits_for_nobody_of_the_batch_is_refused() {
    let ground = TestRoot::new();
    let error = ground.team.tasks().create_all(vec![plan("a", &[]), plan("b", &[2])]).unwrap_err();
    assert!(matches!(error, Error::NoSuchBatchIndex { index: 2, count: 2, .. }), "{error}");
    assert_nothing_created(&ground);
}

#[test]
fn an_owner_who_is_no_member_is_refused() {
    let ground = TestRoot::new();
    let task = NewTask { owner: Some(agent("zed")), ..NewTask::new("b", &agent("team-lead")) };
    let error = ground
        .team
        .tasks()
        .create_all(vec![plan("a", &[]), BatchTask { task, blocked_by_index: vec![] }])
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_nothing_created(&ground);
}

#[test]
fn a_circle_through_tasks_that_are_there_is_found() {
    let ground = TestRoot::new();
    let tasks = ground.team.tasks();
    tasks.create_all(vec![plan("x", &[]), plan("y", &[0])]).unwrap();
    let before = tasks.list().unwrap();
    let mut new = vec![plan("a", &[1]), plan("b", &[])];
    new[0].task.blocks = vec![id(1)];
    new[1].task.blocked_by = vec![id(2)];
    let Err(Error::BatchCycle { path: way }) = tasks.create_all(new.clone()) else { panic!("a circle") };
    assert_eq!(way, ["1", "2", "\"b\"", "\"a\"", "1"]);
    new[1].task.blocked_by = vec![id(9)];
    assert!(matches!(tasks.create_all(new.clone()), Err(Error::NoSuchTask { .. })));
    assert_eq!(tasks.list().unwrap(), before);
    new[1].task.blocked_by = vec![];
    let made = tasks.create_all(new).unwrap();
    assert_eq!((made[0].id, &made[0].blocks, &made[0].blocked_by), (id(3), &vec![id(1)], &vec![id(4)]));
    assert_eq!(tasks.get(&id(1)).unwrap().blocked_by, [id(3)]);
    assert_eq!(available(&tasks), [id(4)]);
}

#[test]
fn each_owner_is_told_of_all_that_is_theirs_in_order() {
    let ground = TestRoot::new();
    let planned = (0..20).map(|at| {
        let owner = Some(agent(if at % 2 == 0 { "ann" } else { "BOB" }));
        BatchTask { task: NewTask { owner, ..plan(&at.to_string(), &[]).task }, blocked_by_index: vec![] }
    });
    ground.team.tasks().create_all(planned.collect()).unwrap();
    for (who, first) in [("ann", 1), ("bob", 2)] {
        let told: Vec<u32> = ground.team.inbox(&agent(who)).read().unwrap().iter().map(task_of).collect();
        assert_eq!(told, (first..=20).step_by(2).collect::<Vec<_>>(), "{who}");
    }
}

fn task_of(entry: &protocol::message::InboxEntry) -> u32 {
    match Payload::parse(&entry.message.as_ref().unwrap().text) {
        Some(Payload::TaskAssignment(assignment)) => assignment.task_id.number(),
        other => panic!("{other:?}"),
    }
}
