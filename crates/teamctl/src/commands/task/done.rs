//! `task done`: a task is completed. Where a teammate says so, the lead is told.

use super::print_task;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;
use store::now;

/// Say that a task is completed; again is fine
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task done 3")]
pub(super) struct DoneTaskArgs {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &CommandContext, team: &Team, args: &DoneTaskArgs) -> Result<(), ErrorReport> {
    let task = here.caller_in(team.clone())?.complete_task(&args.id, now())?;
    print_task(here, &task, &format!("Task {} is done: {}", task.id, task.subject));
    Ok(())
}
