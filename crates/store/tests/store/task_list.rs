//! The task list: ids, claims, dependencies, and the changes of status that are allowed.

use crate::test_root::{TestRoot, agent, overwrite_in_place};
use protocol::error_kind_and_report::ErrorKind;
use protocol::inbox_message_payload::Payload;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value, json};
use store::{Error, NewTask, TaskUpdate, Tasks};

fn id(number: u32) -> TaskId {
    TaskId::from_number(number).unwrap()
}

fn add(tasks: &Tasks, blocked_by: &[TaskId]) -> Task {
    let new = NewTask { blocked_by: blocked_by.to_vec(), ..NewTask::new("x", &agent("ann")) };
    tasks.create(new).unwrap()
}

fn assignments(env: &TestRoot, name: &str) -> Vec<TaskId> {
    let entries = env.team.inbox(&agent(name)).read().unwrap();
    let texts = entries.into_iter().map(|entry| entry.message.unwrap().text);
    texts
        .filter_map(|text| match Payload::parse(&text) {
            Some(Payload::TaskAssignment(assignment)) => Some(assignment.task_id),
            _ => None,
        })
        .collect()
}

fn metadata(value: Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

#[test]
fn one_of_sixteen_claimants_gets_the_task_and_is_notified() {
    let env = TestRoot::new();
    let task = add(&env.team.tasks(), &[]);
    let claim = |number: usize| {
        let name = agent(if number.is_multiple_of(2) { "ann" } else { "bob" });
        env.reopen_team().tasks().claim(Some(&task.id), &name)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let claimants: Vec<_> = (0..16).map(|number| scope.spawn(move || claim(number))).collect();
        claimants.into_iter().map(|claimant| claimant.join().unwrap()).collect()
    });
    let claims: Vec<_> = results.iter().flatten().collect();
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].status, TaskStatus::InProgress);
    let owner = claims[0].owner.clone().unwrap();
    let errors = results.iter().filter_map(|result| result.as_ref().err());
    let names_the_owner = |error: &Error| matches!(error, Error::TaskClaimed { owner: claimant, .. } | Error::AlreadyInProgress { owner: claimant, .. } if *claimant == owner);
    assert!(errors.clone().all(names_the_owner));
    assert!(errors.into_iter().all(|error| error.kind() == ErrorKind::AlreadyExists));
    assert_eq!(assignments(&env, owner.as_str()), [task.id]);
}

#[test]
fn one_of_sixteen_teammates_starts_a_task_and_the_lead_may_restart_it() {
    let env = TestRoot::new();
    let task = add(&env.team.tasks(), &[]);
    let start = || TaskUpdate { status: Some(TaskStatus::InProgress), ..TaskUpdate::default() };
    let start_task = |number: usize| {
        let name = agent(if number.is_multiple_of(2) { "ann" } else { "bob" });
        (name.clone(), env.reopen_team().tasks().update(&task.id, start(), &name))
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|number| scope.spawn(move || start_task(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let owner = env.team.tasks().get(&task.id).unwrap().owner.unwrap();
    for (name, result) in results {
        match result {
            Ok(task) => assert_eq!((Some(&name), task.owner.as_ref()), (Some(&owner), Some(&owner))),
            Err(error) => {
                assert!(
                    matches!(&error, Error::TaskClaimed { owner: claimant, .. } if *claimant == owner && *claimant != name),
                    "{error}"
                );
            }
        }
    }
    assert_eq!(assignments(&env, owner.as_str()), [task.id]);
    assert!(env.team.tasks().update(&task.id, start(), &MemberName::lead()).is_ok());
}

#[test]
fn sixteen_creators_get_consecutive_ids() {
    let env = TestRoot::new();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..5).for_each(|_| drop(add(&env.reopen_team().tasks(), &[]))));
        }
    });
    let ids: Vec<u32> = env.team.tasks().list().unwrap().iter().map(|task| task.id.number()).collect();
    assert_eq!(ids, (1..=80).collect::<Vec<_>>());
}

#[test]
fn ids_are_never_reused() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    (0..3).for_each(|_| drop(add(&tasks, &[])));
    assert_eq!(tasks.delete(&id(3)).unwrap().status, TaskStatus::Deleted);
    assert_eq!(std::fs::read(tasks.path().join(".highwatermark")).unwrap(), b"3");
    tasks.delete(&id(1)).unwrap();
    assert_eq!(add(&tasks, &[]).id, id(4));
    overwrite_in_place(&tasks.path().join(".highwatermark"), "41");
    assert_eq!(add(&tasks, &[]).id, id(42));
    assert_eq!(tasks.delete(&id(3)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_deleted_task_is_removed_from_all_dependencies() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let (a, b) = (add(&tasks, &[]), add(&tasks, &[id(1)]));
    add(&tasks, &[a.id, b.id]);
    tasks.delete(&b.id).unwrap();
    let all = tasks.list().unwrap();
    assert_eq!((all[0].blocks.clone(), all[1].blocked_by.clone()), (vec![id(3)], vec![id(1)]));
}

#[test]
fn dependencies_are_stored_in_both_files_and_close_no_cycle() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    add(&tasks, &[]);
    add(&tasks, &[id(1)]);
    let third = NewTask { blocks: vec![id(1)], ..NewTask::new("third", &agent("ann")) };
    tasks.create(third).unwrap();
    let all = tasks.list().unwrap();
    assert_eq!((all[0].blocks.clone(), all[0].blocked_by.clone()), (vec![id(2)], vec![id(3)]));
    assert_eq!((all[1].blocked_by.clone(), all[2].blocks.clone()), (vec![id(1)], vec![id(1)]));
    let add_dependency = |blocker: u32, blocked: u32| {
        let update = TaskUpdate { add_blocks: vec![id(blocked)], ..TaskUpdate::default() };
        tasks.update(&id(blocker), update, &agent("ann"))
    };
    let Err(Error::DependencyCycle { path }) = add_dependency(2, 3) else {
        panic!("the cycle is not rejected")
    };
    assert_eq!(path, [id(3), id(1), id(2), id(3)]);
    assert_eq!(add_dependency(1, 1).unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(add_dependency(1, 9).unwrap_err().kind(), ErrorKind::NotFound);
    let fourth =
        NewTask { blocks: vec![id(3)], blocked_by: vec![id(2)], ..NewTask::new("fourth", &agent("ann")) };
    let Err(Error::BatchCycle { path }) = tasks.create(fourth) else { panic!("the cycle is not rejected") };
    assert_eq!(path, ["3", "1", "2", "\"fourth\"", "3"]);
    assert_eq!(tasks.list().unwrap(), all, "a rejected change changes no task");
}

#[test]
fn a_task_is_blocked_until_its_blocker_is_completed() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    add(&tasks, &[]);
    add(&tasks, &[id(1)]);
    assert_eq!(tasks.claim(Some(&id(2)), &agent("ann")).unwrap_err().kind(), ErrorKind::Refused);
    let start = TaskUpdate { status: Some(TaskStatus::InProgress), ..TaskUpdate::default() };
    assert!(matches!(tasks.update(&id(2), start, &agent("ann")), Err(Error::TaskBlocked { .. })));
    tasks.complete(&id(1), &agent("ann")).unwrap();
    assert_eq!(tasks.get(&id(2)).unwrap().blocked_by, [id(1)], "the dependency stays in the file");
    tasks.claim(Some(&id(2)), &agent("ann")).unwrap();
}

#[test]
fn a_claim_without_an_id_prefers_own_tasks_and_then_the_lowest_id() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    tasks.create_internal(&agent("ann"), "do").unwrap();
    add(&tasks, &[]);
    tasks.create(NewTask { owner: Some(agent("BOB")), ..NewTask::new("bob's", &agent("ann")) }).unwrap();
    assert_eq!(tasks.claim(None, &agent("bob")).unwrap().id, id(3));
    assert_eq!(tasks.claim(None, &agent("bob")).unwrap().id, id(2));
    let error = tasks.claim(None, &agent("bob")).unwrap_err();
    assert!(matches!(error, Error::NoTaskAvailable(_)), "{error}");
    assert_eq!(assignments(&env, "bob"), [id(3), id(2)], "a claim of an own task is no new assignment");
}

#[test]
fn an_owner_must_be_a_member() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let error =
        tasks.create(NewTask { owner: Some(agent("anne")), ..NewTask::new("x", &agent("ann")) }).unwrap_err();
    assert!(error.help().unwrap().contains("ann"), "{error}");
    assert!(tasks.list().unwrap().is_empty());
    add(&tasks, &[]);
    assert_eq!(tasks.claim(None, &agent("zed")).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn the_status_of_a_task_follows_the_rules() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let ann = agent("ann");
    let set_status = |status: &str| {
        let status = Some(TaskStatus::from_name(status));
        tasks.update(&id(1), TaskUpdate { status, ..TaskUpdate::default() }, &ann)
    };
    add(&tasks, &[]);
    let started = set_status("in_progress").unwrap();
    assert_eq!(started.owner, Some(ann.clone()), "the caller becomes the owner");
    assert_eq!(assignments(&env, "ann"), [id(1)]);
    tasks.fail(&id(1), "no ladder").unwrap();
    let failed = tasks.get(&id(1)).unwrap();
    assert_eq!((failed.failure(), &failed.owner), (Some("no ladder"), &Some(ann.clone())));
    let released = tasks.release(&id(1), &ann).unwrap();
    assert_eq!((released.status, released.owner), (TaskStatus::Pending, None));
    tasks.complete(&id(1), &ann).unwrap();
    tasks.complete(&id(1), &ann).unwrap();
    assert_eq!(set_status("pending").unwrap_err().kind(), ErrorKind::Refused);
    set_status("in_progress").unwrap();
    assert!(matches!(set_status("resting"), Err(Error::InvalidTransition { .. })));
    assert_eq!(set_status("deleted").unwrap().status, TaskStatus::Deleted);
    assert_eq!(tasks.get(&id(1)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn an_update_keeps_unknown_fields() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let text = "{\n  \"id\": \"7\",\n  \"subject\": \"s\",\n  \"future\": 1000.0,\n  \"status\": \"paused\",\n  \
        \"blocks\": [],\n  \"blockedBy\": [],\n  \"metadata\": {\n    \"a\": 1e999,\n    \"b\": 2\n  }\n}";
    let path = tasks.path().join("7.json");
    overwrite_in_place(&path, text);
    let update = TaskUpdate {
        subject: Some("t".to_owned()),
        metadata: metadata(json!({"b": null, "c": [1]})),
        ..TaskUpdate::default()
    };
    tasks.update(&id(7), update, &agent("ann")).unwrap();
    let expected = text.replace("\"s\"", "\"t\"").replace("\"b\": 2", "\"c\": [\n      1\n    ]");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    let error = tasks.complete(&id(7), &agent("ann")).unwrap_err();
    assert!(error.to_string().contains("it is paused"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
}

#[test]
fn no_lock_remains_after_a_change() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    add(&tasks, &[]);
    add(&tasks, &[id(1)]);
    tasks.claim(None, &agent("ann")).unwrap();
    let names: Vec<String> = crate::test_root::list_dir(&tasks.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, [".lock", "1.json", "2.json"]);
    assert_eq!(std::fs::metadata(tasks.path().join(".lock")).unwrap().len(), 0);
}

#[test]
fn a_text_over_its_limit_is_refused_by_name() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let task = add(&tasks, &[]);
    let long = "x".repeat(6 << 20);
    let long_metadata = metadata(json!({"command": long}));
    let new = || NewTask::new("count", &agent("ann"));
    let created = [
        ("a task subject", NewTask { subject: long.clone(), ..new() }),
        ("a task description", NewTask { description: long.clone(), ..new() }),
        ("a task's active form", NewTask { active_form: Some(long.clone()), ..new() }),
        ("a task's metadata", NewTask { metadata: long_metadata.clone(), ..new() }),
    ];
    for (kind, new) in created {
        assert_refused_by_name(tasks.create(new), kind);
    }
    let updates = [
        ("a task subject", TaskUpdate { subject: Some(long.clone()), ..TaskUpdate::default() }),
        ("a task description", TaskUpdate { description: Some(long.clone()), ..TaskUpdate::default() }),
        ("a task's metadata", TaskUpdate { metadata: long_metadata, ..TaskUpdate::default() }),
    ];
    for (kind, update) in updates {
        assert_refused_by_name(tasks.update(&task.id, update, &agent("ann")), kind);
    }
    assert_eq!(tasks.list().unwrap(), [task]);
}

fn assert_refused_by_name(result: Result<Task, Error>, kind: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().starts_with(&format!("cannot accept {kind} of ")), "{error}");
}

#[test]
fn metadata_does_not_grow_beyond_its_limit_by_updates() {
    let env = TestRoot::new();
    let tasks = env.team.tasks();
    let task = add(&tasks, &[]);
    let add_key = |key: &str| {
        let metadata = metadata(json!({key: "x".repeat(200 << 10)}));
        tasks.update(&task.id, TaskUpdate { metadata, ..TaskUpdate::default() }, &agent("ann"))
    };
    add_key("one").unwrap();
    assert_refused_by_name(add_key("two"), "a task's metadata");
}
