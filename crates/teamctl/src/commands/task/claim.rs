//! `task claim`: take a task; of several who try, one has it.

use super::print_task;
use crate::context::CommandContext;
use protocol::control::NextTaskRequest;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Take a task: owner and in progress in one step
///
/// Exit code 67: nothing is available. 73: somebody has it. 76: it waits for another.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task claim\n  teamctl task claim 3 --json")]
pub(super) struct ClaimTaskArgs {
    /// Which [default: the first of your own that can start, else the lowest available]
    id: Option<TaskId>,
}

pub(super) fn run(here: &CommandContext, team: &Team, args: &ClaimTaskArgs) -> Result<(), ErrorReport> {
    let (tasks, me, hints) = (team.tasks(), here.caller_name(), here.next_task_client()?);
    let asked =
        || NextTaskRequest { team: team.name().clone(), owner: me.clone(), include_in_progress: false };
    let task = match &args.id {
        Some(id) => tasks.claim(Some(id), &me),
        None => tasks.claim_with_hint(&me, || hints.next_task(asked())),
    };
    let task = task?;
    print_task(here, &task, &format!("Task {} is {}'s: {}", task.id, here.caller_name(), task.subject));
    Ok(())
}
