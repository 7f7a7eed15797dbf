//! `task release`: makes a task pending again.

use super::force_option_ends_turn::ForceArg;
use super::format::print_task;
use crate::command_context::CommandContext;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use store::{Team, now};

/// Make a task pending again
///
/// Example: teamctl task release 3
///
/// The released task has no owner, unless it comes from a run file that names one.
#[derive(Debug, clap::Args)]
pub(super) struct ReleaseTaskArgs {
    /// Id of the task
    id: TaskId,
    #[command(flatten)]
    pub(super) force: ForceArg,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &ReleaseTaskArgs) -> Result<(), ErrorReport> {
    let caller = context.caller_in(team.clone());
    let task = args.force.change(context, team, &args.id, || caller.release_task(&args.id, now()))?;
    print_task(context, &task, &format!("Task {} is pending again: {}", task.id, task.subject));
    Ok(())
}
