//! A snapshot at a running team: its tasks, who lives, and how a task is given back.

use crate::run_context::RunContext;
use crate::task_fate::{ABANDONED_KEY, MemberState, MemberStates, TaskRelease};
use protocol::control::{MemberStatus, TeamStatus};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use store::{Error, TaskUpdate, Team};

/// What there is at one moment.
#[derive(Debug, Default)]
pub(crate) struct TeamSnapshot {
    /// All tasks, internal ones too.
    pub(crate) tasks: Vec<Task>,
    /// Who can still do something.
    pub(crate) lives: MemberStates,
    /// Those that the daemon has running.
    pub(crate) running: Vec<MemberStatus>,
    /// Why the daemon starts nobody for it any more.
    pub(crate) exhausted_budget: Option<String>,
}

/// Looks. The tasks first: who is gone after that will not have begun one of them since.
pub(crate) fn take(run: &mut RunContext, team: &Team) -> Result<TeamSnapshot, ErrorReport> {
    let tasks = team.tasks().list()?;
    let others = team.config()?.members.into_iter().map(|member| member.name);
    let file = &run.file;
    let others = others.filter(|name| !file.members.iter().any(|member| member.name == *name));
    let others = others.filter(|name| !name.is_lead()).map(|name| (name, MemberState::Running));
    let mut lives = MemberStates(others.collect(), BTreeSet::new());
    let status = run.daemon.status()?;
    let status = status.teams.into_iter().find(|status| status.name == *team.name());
    let status = status.unwrap_or_else(|| empty_status(team));
    for past in status.past_members {
        let life = match past.is_suspended {
            true => MemberState::Suspended,
            false if past.has_respawn() => MemberState::Respawning,
            false => MemberState::Gone,
        };
        lives.0.insert(past.name, life);
    }
    lives.0.extend(status.members.iter().map(|agent| (agent.name.clone(), MemberState::Running)));
    lives.1.extend(status.members.iter().filter_map(|agent| agent.turn_task));
    let spent = status.budget.and_then(|budget| budget.exhausted_reason);
    Ok(TeamSnapshot { tasks, lives, running: status.members, exhausted_budget: spent })
}

/// Of a team that the daemon has not seen yet.
fn empty_status(team: &Team) -> TeamStatus {
    TeamStatus {
        name: team.name().clone(),
        members: Vec::new(),
        past_members: Vec::new(),
        worktrees: Vec::new(),
        budget: None,
    }
}

/// Makes a task pending again; false where it is no longer as it was when that was decided.
pub(crate) fn release_task(team: &Team, given: &TaskRelease) -> Result<bool, ErrorReport> {
    let tasks = team.tasks();
    let still = |task: &Task| {
        let failed = task.failure().is_some();
        task.status == TaskStatus::InProgress && failed == (given.why != ABANDONED_KEY)
    };
    let metadata = [("failure".to_owned(), Value::Null), (given.why.to_owned(), Value::from(given.times))];
    let update = TaskUpdate {
        status: Some(TaskStatus::Pending),
        owner: given.to.clone(),
        metadata: Some(Map::from_iter(metadata)),
        ..TaskUpdate::default()
    };
    match tasks.get(&given.id) {
        Ok(task) if still(&task) => {}
        Ok(_) | Err(Error::NoSuchTask { .. }) => return Ok(false),
        Err(error) => return Err(ErrorReport::from(error)),
    }
    match tasks.update(&given.id, update, &AgentName::lead()) {
        Ok(_) => Ok(true),
        // It was given its owner; that it hears of it by a message is a courtesy.
        Err(Error::OwnerNotNotified { .. }) => Ok(true),
        // Somebody was faster, or the owner has just gone: the next snapshot decides anew.
        Err(error) if [ErrorKind::Refused, ErrorKind::NotFound].contains(&error.kind()) => Ok(false),
        Err(error) => Err(ErrorReport::from(error)),
    }
}
