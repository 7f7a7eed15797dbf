//! Tests of the files thread. Most of them act as another program that removes, replaces or damages
//! the files of a team.

#![allow(clippy::disallowed_methods, reason = "the tests act as a foreign program")]

mod agent_environment_files;
mod create_team;
mod delete_team;
mod deregister_and_shutdown;
mod inbox_at_registration;
mod inbox_scan;
mod output_log_times;
mod register_and_deregister_in_batches;
mod scan_and_repair_team_config;
mod task_scan;

use crate::core::agent_process::AgentProcess;
use crate::core::core_event::CoreEvent;
use crate::core::exit_record::ExitRecord;
use crate::core::jobs::file_jobs::{FileJob, RegisteredMember, RosterMembers, TeamCreation};
use crate::core::jobs::file_results::{FileResult, InboxScanResult};
use crate::core::jobs::queue_and_batch_of_file_job::Lane;
use crate::core::roster::Roster;
use crate::core::roster::agent_record::{AgentRecord, HookState};
use crate::core::roster::data_for_next_spawn::RespawnRecord;
use crate::core::spawn_lifecycle::Lifecycle;
use crate::core::stop_and_exit_of_spawn::{Exited, ShutdownRequests};
use crate::io::files::files_thread::FilesThread;
use crate::io::files::prepare_and_finish_registration;
use crate::io::files::root_and_saves_shared_by_threads::SharedThreadState;
use protocol::control_socket::{Activity, CreateTeamRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::Message;
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::policy::{Policy, TaskCommandPolicy};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_config::TeamConfig;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use store::{Durability, Error, NewTask, Root, StateDir, Team};

/// A files thread with its root and state directory below `at`.
fn new_files_thread(at: &Path, logged_counts: BTreeMap<(TeamName, MemberName), usize>) -> FilesThread {
    let root = at.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let root = Root::open(&root, at, Durability::Process).unwrap();
    let state = StateDir::open(&at.join("state")).unwrap();
    let (events, _) = tokio::sync::mpsc::unbounded_channel();
    let shared = Arc::new(SharedThreadState::new(root, logged_counts));
    FilesThread::new(shared, Arc::new(state), &Lane::Team(survey_team()), events)
}

fn survey_team() -> TeamName {
    TeamName::parse("survey").unwrap()
}

fn create_request() -> CreateTeamRequest {
    CreateTeamRequest::new(survey_team(), "/".into())
}

fn created_team(files: &mut FilesThread) -> Team {
    files.create(&TeamCreation::new(1, create_request(), 1)).unwrap();
    files.root.team(&survey_team()).unwrap()
}

fn add_task(team: &Team, subject: &str) -> TaskId {
    team.tasks().create(NewTask::new(subject, &MemberName::lead())).unwrap().id
}

fn new_record(name: &str, spawned_at: u64) -> AgentRecord {
    let record = serde_json::json!({
        "spawn_id": "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2", "token": "t", "spawned_at": spawned_at,
        "request": {"team": "survey", "name": name, "unique": false, "argv": [], "cwd": "/", "env": {},
            "prompt": "go", "delivery": "native"},
        "respawn": RespawnRecord::default(), "color": "blue", "prompt_delivery": "message",
        "approval_delivery": "message", "session": null, "hook_state": HookState::default(), "worktree": null,
        "config_mode": null, "no_output_turn": null, "lifecycle": {"running": AgentProcess::default()},
        "tracking_task": null, "pane": null, "is_hidden": false
    });
    serde_json::from_value(record).unwrap()
}

fn record_with_environment(name: &str, spawned_at: u64, file: &str) -> AgentRecord {
    let mut record = new_record(name, spawned_at);
    record.respawn.environment_file = file.to_owned();
    record
}

fn exited(exit: ExitRecord) -> Lifecycle {
    Lifecycle::Exited(Exited::new(AgentProcess::default(), ShutdownRequests::default(), Some(exit)))
}

fn roster_members(names: &[(&str, Activity)]) -> RosterMembers {
    let to_member = |(name, activity): &(&str, Activity)| RegisteredMember {
        record: new_record(name, 7).into(),
        activity: *activity,
    };
    let registered: Vec<RegisteredMember> = names.iter().map(to_member).collect();
    RosterMembers {
        all_names: registered.iter().map(|member| member.record.request.name.clone()).collect(),
        registered,
    }
}

fn register(files: &mut FilesThread, record: AgentRecord) {
    let at = record.spawned_at;
    match files.run_job(FileJob::RegisterMember { record: record.into(), at }) {
        Some(FileResult::MemberRegistered { result, .. }) => drop(result.unwrap()),
        other => panic!("{other:?}"),
    }
}

fn deregister(files: &mut FilesThread, record: AgentRecord) -> Option<ErrorReport> {
    match files.run_job(FileJob::DeregisterMember { record: record.into() }) {
        Some(FileResult::MemberDeregistered { error, .. }) => error,
        other => panic!("{other:?}"),
    }
}

/// Creates the team `survey` with the roster member ann and the foreign member eve.
fn team_with_ann(files: &mut FilesThread) -> (Team, RosterMembers) {
    let request = CreateTeamRequest { description: Some("a survey".into()), ..create_request() };
    files.create(&TeamCreation::new(1, request, 1)).unwrap();
    let team = files.root.team(&survey_team()).unwrap();
    register(files, new_record("ann", 7));
    team.add_member(&prepare_and_finish_registration::to_config_member(
        &new_record("eve", 9),
        Activity::Idle,
    ))
    .unwrap();
    let ann = roster_members(&[("ann", Activity::Idle)]);
    files.check_config(&survey_team(), &ann).unwrap();
    (team, ann)
}
