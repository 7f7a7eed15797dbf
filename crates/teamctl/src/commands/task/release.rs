//! `task release`: give a task back.

use super::print_task;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Give a task back: pending, and nobody's
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task release 3")]
pub(super) struct ReleaseTaskArgs {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &CommandContext, team: &Team, args: &ReleaseTaskArgs) -> Result<(), ErrorReport> {
    let task = team.tasks().release(&args.id, &here.caller_name())?;
    print_task(here, &task, &format!("Task {} is pending again: {}", task.id, task.subject));
    Ok(())
}
