//! `task release`: give a task back.

use super::told;
use crate::here::{Here, fault};
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use store::Team;

/// Give a task back: pending, and nobody's
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task release 3")]
pub(super) struct Release {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &Here, team: &Team, args: &Release) -> Result<(), ErrorReport> {
    let task = team.tasks().release(&args.id, &here.me()).map_err(fault)?;
    told(here, &task, &format!("Task {} is pending again: {}", task.id, task.subject));
    Ok(())
}
