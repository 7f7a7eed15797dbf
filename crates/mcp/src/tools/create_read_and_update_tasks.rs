//! The tools `TaskCreate`, `TaskGet`, `TaskList` and `TaskUpdate`, which read and change the task
//! list. They use the task files directly, without the daemon.

use super::input_and_output_schemas::{Property, required_property};
use super::tool_definition::{ToolDefinition, ToolEffect, run_blocking};
use crate::args::ServerArgs;
use crate::server_context::ServerContext;
use client::confirm_claimed_task::confirm_task_in_progress;
use client::connect_to_daemon::DaemonAddress;
use protocol::allowed_callers::AllowedCallers;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::TaskStatus;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{Caller, NewTask, TaskUpdate as Update, now};

const TASK_OUTPUT: &[Property] = &[required_property("task", "object")];

pub(super) struct TaskCreateTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskCreateInput {
    /// What to do, in the imperative.
    subject: String,
    /// Everything that the owner must know to do it.
    #[serde(default)]
    description: Option<String>,
    /// What is shown while it is in progress: "Counting the lines".
    #[serde(default)]
    active_form: Option<String>,
    /// Any other data, as an object.
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

impl ToolDefinition for TaskCreateTool {
    const NAME: &'static str = "TaskCreate";
    const TITLE: &'static str = "Add a task";
    const DESCRIPTION: &'static str = "Add a task to the team's list: pending and without an owner. Set an owner, or the \
        tasks it must wait for, with TaskUpdate. An idle teammate claims the available task with the lowest number by \
        itself.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = TaskCreateInput;
    const OUTPUT: &'static [Property] = TASK_OUTPUT;

    async fn call(context: &Arc<ServerContext>, input: TaskCreateInput) -> Result<Value, ErrorReport> {
        run_blocking(context, move |context| {
            let caller = context.caller()?;
            let new = NewTask {
                description: input.description.unwrap_or_default(),
                active_form: input.active_form,
                metadata: input.metadata,
                ..NewTask::new(&input.subject, caller.name())
            };
            let task = caller.create_task(new)?;
            task_json(&caller, task.id)
        })
        .await
    }
}

pub(super) struct TaskGetTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskGetInput {
    /// The task's id.
    task_id: String,
}

impl ToolDefinition for TaskGetTool {
    const NAME: &'static str = "TaskGet";
    const TITLE: &'static str = "Show a task";
    const DESCRIPTION: &'static str =
        "Show one task in full: its description, its owner, and the tasks it waits for.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = TaskGetInput;
    const OUTPUT: &'static [Property] = TASK_OUTPUT;

    async fn call(context: &Arc<ServerContext>, input: TaskGetInput) -> Result<Value, ErrorReport> {
        let id = parse_id(&input.task_id)?;
        run_blocking(context, move |context| task_json(&context.caller()?, id)).await
    }
}

pub(super) struct TaskListTool;

#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskListInput {
    /// Whether to show only tasks that can be claimed now.
    #[serde(default)]
    available: Option<bool>,
}

impl ToolDefinition for TaskListTool {
    const NAME: &'static str = "TaskList";
    const TITLE: &'static str = "Show the tasks";
    const DESCRIPTION: &'static str = "Show the team's tasks by number, with status, owner and the tasks they wait for. A \
        task is available if it is pending, has no owner and waits for no other task: claim one with TaskUpdate and \
        status in_progress, the lowest number first.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = TaskListInput;
    const OUTPUT: &'static [Property] = &[required_property("tasks", "array")];

    async fn call(context: &Arc<ServerContext>, input: TaskListInput) -> Result<Value, ErrorReport> {
        run_blocking(context, move |context| {
            let all = context.caller()?.team().tasks().list_cached()?;
            let wanted = all.iter().filter(|task| !task.is_internal());
            let wanted = wanted.filter(|task| input.available != Some(true) || task.is_available(&all));
            Ok(json!({"tasks": wanted.map(|task| task.to_json(&all)).collect::<Vec<_>>()}))
        })
        .await
    }
}

pub(super) struct TaskUpdateTool;

#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct TaskUpdateInput {
    /// The task's id.
    #[schemars(required)]
    task_id: String,
    /// What to do.
    subject: Option<String>,
    /// The description.
    description: Option<String>,
    /// What is shown while it is in progress.
    active_form: Option<String>,
    /// The task's new status. in_progress: the task is being worked on, and becomes yours if it has
    /// no owner. completed: the task is done. pending: the task is released. deleted: the task is
    /// removed for good.
    #[schemars(extend("enum" = ["pending", "in_progress", "completed", "deleted"]))]
    status: Option<String>,
    /// The member that owns the task; the member gets a message.
    owner: Option<String>,
    /// Ids of tasks that must wait for this one.
    add_blocks: Option<Vec<String>>,
    /// Ids of tasks that this one must wait for.
    add_blocked_by: Option<Vec<String>>,
    /// Merged into the task's metadata; null removes a key.
    metadata: Option<Map<String, Value>>,
}

impl ToolDefinition for TaskUpdateTool {
    const NAME: &'static str = "TaskUpdate";
    const TITLE: &'static str = "Change a task";
    const DESCRIPTION: &'static str = "Change a task: claim it (status in_progress) before you work on it, complete it when \
        it is done and only then, set its owner, or the tasks it must wait for. If several members claim it, only one \
        gets it.";
    const EFFECT: ToolEffect = ToolEffect::Idempotent;
    const ALLOWED_CALLERS: AllowedCallers<'static> = AllowedCallers::Everyone;
    type Input = TaskUpdateInput;
    const OUTPUT: &'static [Property] = TASK_OUTPUT;

    async fn call(context: &Arc<ServerContext>, input: TaskUpdateInput) -> Result<Value, ErrorReport> {
        let id = parse_id(&input.task_id)?;
        run_blocking(context, move |context| {
            let caller = context.caller()?;
            let update = parse_update(&caller, input)?;
            let begins = update.status == Some(TaskStatus::InProgress);
            let task = caller.update_task(&id, update, now()).map_err(with_claim_help)?;
            if begins {
                let ServerArgs { socket, state_dir, .. } = context.arguments.clone();
                confirm_task_in_progress(&DaemonAddress { socket, state_dir }, caller.team(), &task)?;
            }
            if task.status == TaskStatus::Deleted {
                Ok(json!({"task": task}))
            } else {
                task_json(&caller, id)
            }
        })
        .await
    }
}

fn parse_update(caller: &Caller, input: TaskUpdateInput) -> Result<Update, ErrorReport> {
    Ok(Update {
        subject: input.subject,
        description: input.description,
        active_form: input.active_form,
        status: input.status.as_deref().map(parse_status).transpose()?,
        owner: input.owner.as_deref().map(|name| caller.resolve_member(name)).transpose()?,
        add_blocks: parse_ids(input.add_blocks)?,
        add_blocked_by: parse_ids(input.add_blocked_by)?,
        remove_blocked_by: Vec::new(),
        metadata: input.metadata,
    })
}

/// Adds help to the error of a task that another member has claimed.
fn with_claim_help(error: ErrorReport) -> ErrorReport {
    match error.kind {
        ErrorKind::AlreadyExists => error.with_help("take another: TaskList with available"),
        _ => error,
    }
}

fn parse_status(text: &str) -> Result<TaskStatus, ErrorReport> {
    match TaskStatus::from_name(text) {
        TaskStatus::Other(_) => {
            let message = format!("cannot set the status {text:?}: there is no such");
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("there is: pending, in_progress, completed, deleted"))
        }
        known => Ok(known),
    }
}

fn parse_ids(texts: Option<Vec<String>>) -> Result<Vec<TaskId>, ErrorReport> {
    texts.unwrap_or_default().iter().map(|text| parse_id(text)).collect()
}

fn parse_id(text: &str) -> Result<TaskId, ErrorReport> {
    let to_report = |error: protocol::member_task_and_request_ids::IdError| {
        ErrorReport::new(ErrorKind::Usage, error.to_string())
    };
    TaskId::parse(text.trim().trim_start_matches('#'))
        .map_err(|error| to_report(error).with_help("TaskList shows the ids"))
}

/// The task's current state, with its open blockers.
fn task_json(caller: &Caller, id: TaskId) -> Result<Value, ErrorReport> {
    let (task, blockers) = caller.team().tasks().get_with_blockers(&id)?;
    Ok(json!({"task": task.to_json(&blockers)}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_statuses_are_parsed_strictly() {
        assert_eq!(parse_id("#3").map(TaskId::number), Ok(3));
        for invalid in ["", "0", "three", "../1", "-1"] {
            assert_eq!(parse_id(invalid).map_err(|error| error.kind), Err(ErrorKind::Usage), "{invalid}");
        }
        assert_eq!(parse_status("in_progress"), Ok(TaskStatus::InProgress));
        assert_eq!(parse_status("done").map_err(|error| error.kind), Err(ErrorKind::Usage));
    }
}
