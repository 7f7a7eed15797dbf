//! `task release`: makes a task pending again, without an owner.

use super::format::print_task;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Make a task pending again, without an owner
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task release 3")]
pub(super) struct ReleaseTaskArgs {
    /// Id of the task
    id: TaskId,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &ReleaseTaskArgs) -> Result<(), ErrorReport> {
    let task = team.tasks().release(&args.id, &context.caller_name())?;
    print_task(context, &task, &format!("Task {} is pending again: {}", task.id, task.subject));
    Ok(())
}
