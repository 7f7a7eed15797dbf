//! `TaskCreate`, `TaskGet`, `TaskList`, `TaskUpdate`: the task list, straight at its files.

use super::schema::{Property, required_property};
use super::{ToolDefinition, ToolEffect, run_blocking};
use crate::server_context::ServerContext;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::id::TaskId;
use protocol::task::TaskStatus;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use store::{Caller, NewTask, TaskUpdate as Update, now};

const TASK_OUTPUT: &[Property] = &[required_property("task", "object")];

/// The tool.
pub(super) struct TaskCreateTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskCreateInput {
    /// What to do, in the imperative.
    subject: String,
    /// All that whoever does it must know.
    #[serde(default)]
    description: Option<String>,
    /// What is shown while it runs: "Counting the lines".
    #[serde(default)]
    active_form: Option<String>,
    /// Anything else, as an object.
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

impl ToolDefinition for TaskCreateTool {
    const NAME: &'static str = "TaskCreate";
    const TITLE: &'static str = "Add a task";
    const DESCRIPTION: &'static str = "Add a task to the team's list: pending, and nobody's. Name an owner, or what it must \
        wait for, with TaskUpdate. An idle teammate takes the lowest that is available by itself.";
    const EFFECT: ToolEffect = ToolEffect::Additive;
    type Input = TaskCreateInput;
    const OUTPUT: &'static [Property] = TASK_OUTPUT;

    async fn call(seat: &Arc<ServerContext>, input: TaskCreateInput) -> Result<Value, ErrorReport> {
        run_blocking(seat, move |seat| {
            let caller = seat.caller()?;
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

/// The tool.
pub(super) struct TaskGetTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct TaskGetInput {
    /// The task's id.
    task_id: String,
}

impl ToolDefinition for TaskGetTool {
    const NAME: &'static str = "TaskGet";
    const TITLE: &'static str = "Show a task";
    const DESCRIPTION: &'static str = "Show one task in full: its description, its owner, what it waits for.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    type Input = TaskGetInput;
    const OUTPUT: &'static [Property] = TASK_OUTPUT;

    async fn call(seat: &Arc<ServerContext>, input: TaskGetInput) -> Result<Value, ErrorReport> {
        let id = parse_id(&input.task_id)?;
        run_blocking(seat, move |seat| task_json(&seat.caller()?, id)).await
    }
}

/// The tool.
pub(super) struct TaskListTool;

/// Its arguments.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskListInput {
    /// Only those that may be taken now.
    #[serde(default)]
    available: Option<bool>,
}

impl ToolDefinition for TaskListTool {
    const NAME: &'static str = "TaskList";
    const TITLE: &'static str = "Show the tasks";
    const DESCRIPTION: &'static str = "Show the team's tasks by number, with status, owner and what they wait for. Available \
        is a task that is pending, nobody's, and waits for no other: take one with TaskUpdate and status in_progress, \
        the lowest first.";
    const EFFECT: ToolEffect = ToolEffect::ReadOnly;
    type Input = TaskListInput;
    const OUTPUT: &'static [Property] = &[required_property("tasks", "array")];

    async fn call(seat: &Arc<ServerContext>, input: TaskListInput) -> Result<Value, ErrorReport> {
        run_blocking(seat, move |seat| {
            let all = seat.caller()?.team().tasks().list_cached()?;
            let wanted = all.iter().filter(|task| !task.is_internal());
            let wanted = wanted.filter(|task| input.available != Some(true) || task.is_available(&all));
            Ok(json!({"tasks": wanted.map(|task| task.to_json(&all)).collect::<Vec<_>>()}))
        })
        .await
    }
}

/// The tool.
pub(super) struct TaskUpdateTool;

/// Its arguments.
#[derive(Debug, Default, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub(super) struct TaskUpdateInput {
    /// The task's id.
    #[schemars(required)]
    task_id: String,
    /// What to do.
    subject: Option<String>,
    /// More of it.
    description: Option<String>,
    /// What is shown while it runs.
    active_form: Option<String>,
    /// in_progress takes it (it becomes yours if it is nobody's), completed ends it, pending gives it back, deleted
    /// removes it for good.
    #[schemars(extend("enum" = ["pending", "in_progress", "completed", "deleted"]))]
    status: Option<String>,
    /// The member whose task it is; the member is told.
    owner: Option<String>,
    /// Ids of tasks that shall wait for this one.
    add_blocks: Option<Vec<String>>,
    /// Ids of tasks that this one shall wait for.
    add_blocked_by: Option<Vec<String>>,
    /// Merged into what is there; null takes a key out.
    metadata: Option<Map<String, Value>>,
}

impl ToolDefinition for TaskUpdateTool {
    const NAME: &'static str = "TaskUpdate";
    const TITLE: &'static str = "Change a task";
    const DESCRIPTION: &'static str = "Change a task: take it (status in_progress) before you work on it, complete it when it \
        is done and only then, name its owner, or say what it must wait for. Of several who take it one gets it.";
    const EFFECT: ToolEffect = ToolEffect::Idempotent;
    type Input = TaskUpdateInput;
    const OUTPUT: &'static [Property] = TASK_OUTPUT;

    async fn call(seat: &Arc<ServerContext>, input: TaskUpdateInput) -> Result<Value, ErrorReport> {
        let id = parse_id(&input.task_id)?;
        run_blocking(seat, move |seat| {
            let caller = seat.caller()?;
            let update = parse_update(&caller, input)?;
            let task = caller.update_task(&id, update, now()).map_err(with_claim_help)?;
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
        metadata: input.metadata,
    })
}

/// Somebody else was faster.
fn with_claim_help(fault: ErrorReport) -> ErrorReport {
    match fault.kind {
        ErrorKind::AlreadyExists => fault.with_help("take another: TaskList with available"),
        _ => fault,
    }
}

fn parse_status(word: &str) -> Result<TaskStatus, ErrorReport> {
    match TaskStatus::from_name(word) {
        TaskStatus::Other(_) => {
            let message = format!("cannot set the status {word:?}: there is no such");
            Err(ErrorReport::new(ErrorKind::Usage, message)
                .with_help("there is: pending, in_progress, completed, deleted"))
        }
        known => Ok(known),
    }
}

fn parse_ids(words: Option<Vec<String>>) -> Result<Vec<TaskId>, ErrorReport> {
    words.unwrap_or_default().iter().map(|word| parse_id(word)).collect()
}

fn parse_id(word: &str) -> Result<TaskId, ErrorReport> {
    let wrong = |error: protocol::id::IdError| ErrorReport::new(ErrorKind::Usage, error.to_string());
    TaskId::parse(word.trim().trim_start_matches('#'))
        .map_err(|error| wrong(error).with_help("TaskList shows the ids"))
}

/// The task as it is now, with what follows from those that it waits for.
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
        for wrong in ["", "0", "three", "../1", "-1"] {
            assert_eq!(parse_id(wrong).map_err(|fault| fault.kind), Err(ErrorKind::Usage), "{wrong}");
        }
        assert_eq!(parse_status("in_progress"), Ok(TaskStatus::InProgress));
        assert_eq!(parse_status("done").map_err(|fault| fault.kind), Err(ErrorKind::Usage));
    }
}
