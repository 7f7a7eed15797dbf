//! `task delete`: removes a task permanently.

use super::force_option_ends_turn::ForceArg;
use super::format::print_task;
use crate::command_context::CommandContext;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use store::{Team, now};

/// Delete a task and all dependencies on it
///
/// Example: teamctl task delete 3
///
/// The id of the task is not used again.
#[derive(Debug, clap::Args)]
pub(super) struct DeleteTaskArgs {
    /// Id of the task
    id: TaskId,
    #[command(flatten)]
    pub(super) force: ForceArg,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &DeleteTaskArgs) -> Result<(), ErrorReport> {
    let caller = context.caller_in(team.clone());
    let task = args.force.change(context, team, &args.id, || caller.delete_task(&args.id, now()))?;
    print_task(context, &task, &format!("Task {} is deleted: {}", task.id, task.subject));
    Ok(())
}
