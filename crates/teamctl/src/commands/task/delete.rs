//! `task delete`: remove a task for good.

use super::print_task;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Remove a task, and every link to it; its id is not used again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task delete 3")]
pub(super) struct DeleteTaskArgs {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &CommandContext, team: &Team, args: &DeleteTaskArgs) -> Result<(), ErrorReport> {
    let task = team.tasks().delete(&args.id)?;
    print_task(here, &task, &format!("Task {} is deleted: {}", task.id, task.subject));
    Ok(())
}
