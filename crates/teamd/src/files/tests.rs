//! The files thread beside somebody who removes and remakes what it knows.

#![allow(clippy::disallowed_methods, reason = "the tests are that somebody")]

mod configs;
mod ends;
mod environments;
mod inboxes;
mod together;

use super::job::{Living, Mail, Ours};
use super::*;
use crate::roster::{End, Outcome, Record, Roster, Told};
use protocol::control::{Activity, CreateTeamRequest, TaskCommandPolicy};
use protocol::id::{RequestId, TaskId};
use protocol::message::Message;
use protocol::policy::Policy;
use protocol::team_config::TeamConfig;
use std::collections::BTreeSet;
use std::path::Path;
use store::{Durability, NewTask};

fn files(at: &Path, told: BTreeMap<(TeamName, AgentName), usize>) -> Files {
    let root = at.join("root");
    std::fs::create_dir_all(&root).unwrap();
    let root = Root::open(&root, &at.join("aside"), Durability::Process).unwrap();
    let state = StateDir::open(&at.join("state")).unwrap();
    let (events, _) = tokio::sync::mpsc::unbounded_channel();
    Files::new(root, state, told, events)
}

fn name() -> TeamName {
    TeamName::parse("survey").unwrap()
}

fn create() -> CreateTeamRequest {
    CreateTeamRequest {
        team: name(),
        description: None,
        agent_type: None,
        model: None,
        cwd: "/".into(),
        unique: false,
        policy: Policy::default(),
        lead_mode: None,
    }
}

fn made(files: &mut Files) -> Team {
    files.create(&create(), 1).unwrap();
    files.root.team(&name()).unwrap()
}

fn task(team: &Team, subject: &str) -> TaskId {
    team.tasks().create(NewTask::new(subject, &AgentName::lead())).unwrap().id
}

fn record(name: &str, born: u64) -> Record {
    let record = serde_json::json!({
        "spawn": "c93b690c-1c1e-4c5e-9d0e-d9451b749ac2", "team": "survey", "name": name, "token": "t",
        "color": "blue", "feed": "native", "agent_type": null, "model": "", "prompt": "go", "cwd": "/",
        "plan_mode_required": false, "born": born, "tracking": null, "pane": null, "join": null, "agent": null,
        "ended": null
    });
    serde_json::from_value(record).unwrap()
}

fn ours(names: &[(&str, Activity)]) -> Ours {
    let living =
        |(name, activity): &(&str, Activity)| Living { record: record(name, 7).into(), activity: *activity };
    let living: Vec<Living> = names.iter().map(living).collect();
    Ours { names: living.iter().map(|one| one.record.name.clone()).collect(), living }
}

fn register(files: &mut Files, record: Record) {
    let (spawn, at) = (record.spawn.clone(), record.born);
    match files.job(FileJob::Register { spawn, record: record.into(), again: false, at }) {
        Some(FileDone::Registered { result, .. }) => drop(result.unwrap()),
        other => panic!("{other:?}"),
    }
}

fn farewell(files: &mut Files, record: Record) -> Option<ErrorReport> {
    match files.job(FileJob::Farewell { record: record.into() }) {
        Some(FileDone::Farewelled { left, .. }) => left,
        other => panic!("{other:?}"),
    }
}

/// The team with ann of ours, who was seen there, and eve of somebody else's.
fn with_ann(files: &mut Files) -> (Team, Ours) {
    let described = CreateTeamRequest { description: Some("a survey".into()), ..create() };
    files.create(&described, 1).unwrap();
    let team = files.root.team(&name()).unwrap();
    register(files, record("ann", 7));
    team.add_member(&member::member(&record("eve", 9), Activity::Idle)).unwrap();
    let ann = ours(&[("ann", Activity::Idle)]);
    files.look_at_config(&name(), &ann).unwrap();
    (team, ann)
}
