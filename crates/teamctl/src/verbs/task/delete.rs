//! `task delete`: remove a task for good.

use super::told;
use crate::here::{Here, fault};
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Remove a task, and every link to it; its id is not used again
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task delete 3")]
pub(super) struct Delete {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &Here, team: &Team, args: &Delete) -> Result<(), ErrorReport> {
    let task = team.tasks().delete(&args.id, &here.me()).map_err(fault)?;
    told(here, &task, &format!("Task {} is deleted: {}", task.id, task.subject));
    Ok(())
}
