//! `task release`: makes a task pending again, without an owner.

use super::format::print_task;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::{Team, now};

/// Make a task pending again, without an owner
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task release 3")]
pub(super) struct ReleaseTaskArgs {
    /// Id of the task
    id: TaskId,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &ReleaseTaskArgs) -> Result<(), ErrorReport> {
    let task = context.caller_in(team.clone())?.release_task(&args.id, now())?;
    print_task(context, &task, &format!("Task {} is pending again: {}", task.id, task.subject));
    Ok(())
}
