//! `task done`: a task is completed. Where a teammate says so, the lead is told.

use super::told;
use crate::here::{Here, now};
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Say that a task is completed; again is fine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task done 3")]
pub(super) struct Done {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &Here, team: &Team, args: &Done) -> Result<(), ErrorReport> {
    let task = here.caller_at(team.clone())?.complete_task(&args.id, now())?;
    told(here, &task, &format!("Task {} is done: {}", task.id, task.subject));
    Ok(())
}
