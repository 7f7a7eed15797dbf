//! `task update`: changes any fields of a task in one step.

use super::force_option_ends_turn::ForceArg;
use super::format::print_task;
use super::parse_json_metadata::parse_metadata;
use crate::command_context::CommandContext;
use client::root_socket_team_and_caller::member_name;
use protocol::error_kind_and_report::ErrorReport;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use serde_json::{Map, Value};
use store::{TaskUpdate, Team, now};

/// Change a task
///
/// Example: teamctl task update 3 --owner ann
///
/// If a task without an owner is set in progress, the caller becomes its owner. Metadata is merged;
/// null removes a key.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  teamctl task update 3 --status in_progress\n  teamctl task update 3 --add-blocked-by 1 --metadata '{\"priority\": 2}'"
)]
pub(super) struct UpdateTaskArgs {
    /// Id of the task
    id: TaskId,
    /// What to do, in the imperative
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    subject: Option<String>,
    /// What to do, in detail
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    description: Option<String>,
    /// Text while the task is in progress
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    active_form: Option<String>,
    /// New status; pending releases the task, deleted removes it
    #[arg(long, value_enum, value_name = "S")]
    status: Option<StatusArg>,
    /// Member that owns the task, and gets a message
    #[arg(long, value_name = "N")]
    owner: Option<String>,
    /// Task that must wait for this one; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    add_blocks: Vec<TaskId>,
    /// Task that this one must wait for; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    add_blocked_by: Vec<TaskId>,
    /// Task that this one no longer waits for; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    remove_blocked_by: Vec<TaskId>,
    /// Further fields, as a JSON object
    #[arg(long, value_name = "JSON", value_parser = parse_metadata)]
    metadata: Option<Map<String, Value>>,
    #[command(flatten)]
    pub(super) force: ForceArg,
}

/// The statuses that can be set, named as in the task files.
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

pub(super) fn run(context: &CommandContext, team: &Team, args: &UpdateTaskArgs) -> Result<(), ErrorReport> {
    let update = requested_changes(team, args)?;
    let caller = context.caller_in(team.clone());
    let change = || caller.update_task(&args.id, update.clone(), now());
    let task = args.force.change(context, team, &args.id, change)?;
    if args.status == Some(StatusArg::InProgress) {
        context.confirm_task(team, &task)?;
    }
    print_task(context, &task, &format!("Task {} is {}: {}", task.id, task.status, task.subject));
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
        remove_blocked_by: args.remove_blocked_by.clone(),
        metadata: args.metadata.clone(),
    })
}
