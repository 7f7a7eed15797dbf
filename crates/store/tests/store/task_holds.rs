//! Which process runs a task, and what callers may not do to such a task.

use crate::test_root::TestRoot;
use protocol::error_kind_and_report::ErrorKind;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{RUN_OWNER_KEY, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};
use store::{Caller, NewTask, TaskUpdate};

fn agent(name: &str) -> MemberName {
    MemberName::parse(name).unwrap()
}

#[test]
fn task_has_one_holder_until_the_hold_is_dropped() {
    let env = TestRoot::new();
    let id = TaskId::from_number(3).unwrap();
    assert_eq!(env.team.task_holder(&id).unwrap(), None);
    let hold = env.team.hold_task(&id, &agent("ann")).unwrap().unwrap();
    let holder = env.reopen_team().task_holder(&id).unwrap().unwrap();
    assert_eq!((holder.member, holder.pid), (agent("ann"), std::process::id()));
    assert!(env.team.hold_task(&id, &agent("bob")).unwrap().is_none());
    assert_eq!(env.team.task_holder(&TaskId::from_number(30).unwrap()).unwrap(), None);
    drop(hold);
    assert_eq!(env.team.task_holder(&id).unwrap(), None);
    assert!(env.team.hold_task(&id, &agent("bob")).unwrap().is_some());
}

#[test]
fn task_in_work_is_not_released_deleted_or_given_away() {
    let env = TestRoot::new();
    let caller = |name: &str| Caller::new(env.reopen_team(), agent(name));
    let id = env.team.tasks().create(NewTask::new("x", &MemberName::lead())).unwrap().id;
    env.team.tasks().claim(Some(&id), &agent("ann")).unwrap();
    let hold = env.team.hold_task(&id, &agent("ann")).unwrap();
    let lead = caller("team-lead");
    let to_bob = || TaskUpdate { owner: Some(agent("bob")), ..TaskUpdate::default() };
    for refused in [
        lead.release_task(&id, 5),
        lead.delete_task(&id, 5),
        lead.update_task(&id, to_bob(), 5),
        caller("bob").release_task(&id, 5),
    ] {
        let error = refused.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Refused);
        let pid = std::process::id();
        assert_eq!(error.message, format!("cannot take task {id} from ann: process {pid} runs it"));
    }
    let harmless =
        TaskUpdate { subject: Some("y".into()), owner: Some(agent("ann")), ..TaskUpdate::default() };
    lead.update_task(&id, harmless, 5).unwrap();
    assert_eq!(caller("ann").release_task(&id, 5).unwrap().status, TaskStatus::Pending, "its own task");
    drop(hold);
    assert_eq!(lead.update_task(&id, to_bob(), 5).unwrap().owner, Some(agent("bob")));
}

#[test]
fn released_task_of_a_run_file_goes_back_to_its_owner() {
    let env = TestRoot::new();
    let caller = |name: &str| Caller::new(env.reopen_team(), agent(name));
    let released_owner = |run_owner: &str, by: &str| {
        let metadata = Map::from_iter([(RUN_OWNER_KEY.to_owned(), Value::from(run_owner))]);
        let new = NewTask { metadata: Some(metadata), ..NewTask::new("x", &MemberName::lead()) };
        let id = env.team.tasks().create(new).unwrap().id;
        env.team.tasks().claim(Some(&id), &agent("ann")).unwrap();
        env.team.tasks().fail(&id, "interrupted").unwrap();
        let task = caller(by).release_task(&id, 5).unwrap();
        assert_eq!((&task.status, task.failure()), (&TaskStatus::Pending, None));
        task.owner
    };
    assert_eq!(released_owner("ann", "team-lead"), Some(agent("ann")));
    assert_eq!(released_owner("ann", "ann"), None, "ann does not want it");
    assert_eq!(released_owner("zed", "team-lead"), None, "zed has left the team");
}

/// A process that is killed leaves its file. The next team of the name has other tasks.
#[test]
fn files_of_killed_processes_go_with_the_team() {
    let env = TestRoot::new();
    let id = TaskId::from_number(3).unwrap();
    let hold = env.team.hold_task(&id, &agent("ann")).unwrap().unwrap();
    std::mem::forget(hold);
    let holds = env.path().join("task-holds");
    let count = || std::fs::read_dir(&holds).unwrap().count();
    assert_eq!(count(), 1);
    env.root.delete_records(env.team.name()).unwrap();
    assert_eq!(count(), 0);
}
