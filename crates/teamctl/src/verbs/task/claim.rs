//! `task claim`: take a task; of several who try, one has it.

use super::told;
use crate::here::{Here, fault};
use protocol::control::NextTaskRequest;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Take a task: owner and in progress in one step
///
/// Exit code 67: nothing is available. 73: somebody has it. 76: it waits for another.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task claim\n  teamctl task claim 3 --json")]
pub(super) struct Claim {
    /// Which [default: the first of your own that can start, else the lowest available]
    id: Option<TaskId>,
}

pub(super) fn run(here: &Here, team: &Team, args: &Claim) -> Result<(), ErrorReport> {
    let (tasks, me, hints) = (team.tasks(), here.me(), here.hints()?);
    let asked =
        || NextTaskRequest { team: team.name().clone(), owner: me.clone(), include_in_progress: false };
    let task = match &args.id {
        Some(id) => tasks.claim(Some(id), &me),
        None => tasks.claim_with_hint(&me, || hints.next(asked())),
    };
    let task = task.map_err(fault)?;
    told(here, &task, &format!("Task {} is {}'s: {}", task.id, here.me(), task.subject));
    Ok(())
}
