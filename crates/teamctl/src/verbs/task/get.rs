//! `task get`: one task in full.

use super::show::page;
use crate::here::{Here, fault};
use crate::output;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use serde_json::json;
use store::Team;

/// Show one task in full
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task get 3\n  teamctl task get 3 --json")]
pub(super) struct Get {
    /// Which
    id: TaskId,
}

pub(super) fn run(here: &Here, team: &Team, args: &Get) -> Result<(), ErrorReport> {
    let (task, blockers) = team.tasks().get_with_blockers(&args.id).map_err(fault)?;
    output::done(here, &json!({"task": task.to_json(&blockers)}), &page(&task, &blockers));
    Ok(())
}
