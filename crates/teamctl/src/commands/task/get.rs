//! `task get`: shows one task with all fields.

use super::format::task_page;
use crate::context::CommandContext;
use crate::output;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use serde_json::json;
use store::Team;

/// Show one task in full
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  teamctl task get 3\n  teamctl task get 3 --json")]
pub(super) struct GetTaskArgs {
    /// Id of the task
    id: TaskId,
}

pub(super) fn run(context: &CommandContext, team: &Team, args: &GetTaskArgs) -> Result<(), ErrorReport> {
    let (task, blockers) = team.tasks().get_with_blockers(&args.id)?;
    output::print_result(context, &json!({"task": task.to_json(&blockers)}), &task_page(&task, &blockers));
    Ok(())
}
