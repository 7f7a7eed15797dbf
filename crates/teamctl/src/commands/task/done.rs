//! `task done`: completes a task. If a teammate does so, the lead gets a message.

use super::format::print_task;
use crate::context::CommandContext;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::{Team, now};

/// Complete a task; no error if it is completed already
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task done 3")]
pub(super) struct DoneTaskArgs {
    /// Id of the task
    id: TaskId,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &DoneTaskArgs) -> Result<(), ErrorReport> {
    let task = context.caller_in(team.clone()).complete_task(&args.id, now())?;
    print_task(context, &task, &format!("Task {} is done: {}", task.id, task.subject));
    Ok(())
}
