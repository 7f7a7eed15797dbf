//! `task update`: any of a task's fields, in one step.

use super::{parse_metadata, print_task};
use crate::context::CommandContext;
use client::team_context::member_name;
use protocol::error::ErrorReport;
use protocol::id::TaskId;
use protocol::task::TaskStatus;
use serde_json::{Map, Value};
use store::now;
use store::{TaskUpdate, Team};

/// Change a task
///
/// Set in progress without an owner, it becomes the caller's. Metadata is merged; null takes a key out.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl task update 3 --owner ann\n  teamctl task update 3 --status in_progress\n  teamctl task update 3 --add-blocked-by 1 --metadata '{\"priority\": 2}'"
)]
pub(super) struct UpdateTaskArgs {
    /// Which
    id: TaskId,
    /// What to do
    #[arg(long, value_name = "TEXT")]
    subject: Option<String>,
    /// More of it
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// What is shown while it runs
    #[arg(long, value_name = "TEXT")]
    active_form: Option<String>,
    /// pending gives it back, deleted removes it
    #[arg(long, value_enum, value_name = "S")]
    status: Option<StatusArg>,
    /// The member whose task it is, and who is told
    #[arg(long, value_name = "N")]
    owner: Option<String>,
    /// A task that shall wait for it; may be given again
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    add_blocks: Vec<TaskId>,
    /// A task that it shall wait for; may be given again
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    add_blocked_by: Vec<TaskId>,
    /// Anything else, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_metadata)]
    metadata: Option<Map<String, Value>>,
}

/// What a status may be set to, as the files spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
enum StatusArg {
    Pending,
    #[value(alias = "in-progress")]
    InProgress,
    Completed,
    Deleted,
}

impl From<StatusArg> for TaskStatus {
    fn from(status: StatusArg) -> TaskStatus {
        match status {
            StatusArg::Pending => TaskStatus::Pending,
            StatusArg::InProgress => TaskStatus::InProgress,
            StatusArg::Completed => TaskStatus::Completed,
            StatusArg::Deleted => TaskStatus::Deleted,
        }
    }
}

pub(super) fn run(here: &CommandContext, team: &Team, args: &UpdateTaskArgs) -> Result<(), ErrorReport> {
    let update = requested_changes(team, args)?;
    let task = here.caller_in(team.clone())?.update_task(&args.id, update, now())?;
    print_task(here, &task, &format!("Task {} is {}: {}", task.id, task.status, task.subject));
    Ok(())
}

fn requested_changes(team: &Team, args: &UpdateTaskArgs) -> Result<TaskUpdate, ErrorReport> {
    Ok(TaskUpdate {
        subject: args.subject.clone(),
        description: args.description.clone(),
        active_form: args.active_form.clone(),
        status: args.status.map(TaskStatus::from),
        owner: args.owner.as_deref().map(|name| member_name(team, name)).transpose()?,
        add_blocks: args.add_blocks.clone(),
        add_blocked_by: args.add_blocked_by.clone(),
        metadata: args.metadata.clone(),
    })
}
