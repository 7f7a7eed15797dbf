//! `task done`: a task is completed. Where a teammate says so, the lead is told.

use super::told;
use crate::here::{Here, fault, now};
use crate::verbs::send::message;
use protocol::fault::{Fault, Kind};
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::payload::{Payload, TaskCompleted};
use protocol::task::{Task, TaskStatus};
use protocol::time::iso8601;
use store::Team;

/// Say that a task is completed; again is fine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task done 3")]
pub(super) struct Done {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &Here, team: &Team, args: &Done) -> Result<(), Fault> {
    let before = team.tasks().get(&args.id).map_err(fault)?;
    let task = team.tasks().complete(&args.id, &here.me()).map_err(fault)?;
    completed(here, team, &before, &task)?;
    told(here, &task, &format!("Task {} is done: {}", task.id, task.subject));
    Ok(())
}

/// Tells the lead, if a teammate has just completed the task. It is completed by then, whatever happens here.
pub(super) fn completed(here: &Here, team: &Team, before: &Task, task: &Task) -> Result<(), Fault> {
    let me = here.me();
    if me.is_lead() || task.status != TaskStatus::Completed || before.status == TaskStatus::Completed {
        return Ok(());
    }
    let payload = Payload::TaskCompleted(TaskCompleted {
        from: me.to_string(),
        task_id: task.id,
        task_subject: task.subject.clone(),
        timestamp: iso8601(now()),
    });
    let told = team.inbox(&AgentName::lead()).append(&message(team, &me, payload.to_text()));
    told.map_err(|error| {
        Fault::new(Kind::Partly, format!("task {} is done, but cannot tell the lead: {error}", task.id))
    })
}
