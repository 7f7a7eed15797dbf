//! `task done`: completes a task. If a teammate does so, the lead gets a message.

use super::format::print_task;
use crate::command_context::CommandContext;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use store::{Team, now};

/// Mark a task as completed
///
/// Example: teamctl task done 3
///
/// Nothing changes if the task is completed already.
#[derive(Debug, clap::Args)]
pub(super) struct DoneTaskArgs {
    /// Id of the task
    id: TaskId,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &DoneTaskArgs) -> Result<(), ErrorReport> {
    let task = context.caller_in(team.clone()).complete_task(&args.id, now())?;
    print_task(context, &task, &format!("Task {} is done: {}", task.id, task.subject));
    Ok(())
}
