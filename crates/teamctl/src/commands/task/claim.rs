//! `task claim`: makes the caller the owner of a task. Of several callers, one succeeds.

use super::format::print_task;
use crate::command_context::CommandContext;
use protocol::control_socket::NextTaskRequest;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use store::Team;

/// Claim a task: own it and set it in progress
///
/// Example: teamctl task claim
///
/// Exit code 67: no task is available. 73: the task has an owner. 75: the team's home has not
/// confirmed the claim within a minute. 76: the task waits for another task.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task claim 3")]
pub(super) struct ClaimTaskArgs {
    /// Id of the task [default: the first of your own that can start, else the lowest available]
    id: Option<TaskId>,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &ClaimTaskArgs) -> Result<(), ErrorReport> {
    let (tasks, caller, daemon) = (team.tasks(), context.caller_name(), context.next_task_client()?);
    let request =
        || NextTaskRequest { team: team.name().clone(), owner: caller.clone(), include_in_progress: false };
    let task = team.change_at_home(|| match &args.id {
        Some(id) => Ok(tasks.claim(Some(id), &caller)?),
        None => Ok(tasks.claim_with_hint(&caller, || daemon.next_task(request()))?),
    })?;
    context.confirm_task(team, &task)?;
    print_task(context, &task, &format!("Task {} is {}'s: {}", task.id, caller, task.subject));
    Ok(())
}
