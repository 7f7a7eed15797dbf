//! The tasks of a run file.

use crate::run_file::table_reader::TableReader;
use crate::run_file::validation_error::ValidationErrors;
use protocol::control::SpawnRequest;
use protocol::name::AgentName;
use protocol::turn_program::TurnProgram;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// One task, as it is to be made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskSpec {
    /// What the file calls it; also in its metadata, so that it is found again.
    pub(crate) key: String,
    /// What to do.
    pub(crate) subject: String,
    /// More of it.
    pub(crate) description: String,
    /// What is shown while it runs.
    pub(crate) active_form: Option<String>,
    /// The member that alone may take it.
    pub(crate) owner: Option<AgentName>,
    /// The places, in the list of all tasks, of those it waits for.
    pub(crate) blocked_by: Vec<usize>,
    /// Anything else, with `key` and `command`.
    pub(crate) metadata: Map<String, Value>,
}

const KEYS: [&str; 8] =
    ["key", "subject", "description", "active_form", "owner", "blocked_by", "command", "metadata"];
/// What the task list itself keeps in the metadata.
const RESERVED_METADATA: [&str; 7] =
    ["key", "command", "failure", "_internal", "attempts", "retries", "abandoned"];

/// All tasks; one with a error is left out, and the error says so.
pub(crate) fn parse_tasks(tasks: &[TableReader], errors: &mut ValidationErrors) -> Vec<TaskSpec> {
    if tasks.iter().any(|task| task.key_offset("command").is_some()) && !has_shell() {
        let at = tasks.iter().find_map(|task| task.key_offset("command")).unwrap_or(0);
        errors.push(at, "cannot run a command: there is no sh in the PATH");
    }
    let places =
        tasks.iter().enumerate().filter_map(|(place, task)| Some((key_without_errors(task)?, place)));
    let places: HashMap<String, usize> = places.collect();
    tasks.iter().filter_map(|task| parse_task(task, &places, errors)).collect()
}

/// A worker runs commands, and fails a task that has none.
pub(crate) fn check_worker_commands(
    tasks: &[TableReader],
    members: &[SpawnRequest],
    errors: &mut ValidationErrors,
) {
    for task in tasks.iter().filter(|task| task.key_offset("command").is_none()) {
        let owner = task
            .string("owner", &mut ValidationErrors::new(""))
            .map(|owner| AgentName::new_unchecked(&owner.value));
        let takes = |member: &&SpawnRequest| owner.as_ref().is_none_or(|owner| member.name == *owner);
        let mut takers = members.iter().filter(takes).peekable();
        if takers.peek().is_some() && takers.all(needs_command) {
            errors.push_missing(
                task.at,
                "a task for workers alone needs the key command: they do nothing else",
            );
        }
    }
}

fn needs_command(member: &SpawnRequest) -> bool {
    matches!(&member.turns, Some(TurnProgram::Worker(worker)) if worker.run.is_none())
}

/// Without a word on what is wrong with it: `plan` says that.
fn key_without_errors(task: &TableReader) -> Option<String> {
    task.string("key", &mut ValidationErrors::new("")).map(|key| key.value)
}

fn parse_task(
    task: &TableReader,
    places: &HashMap<String, usize>,
    errors: &mut ValidationErrors,
) -> Option<TaskSpec> {
    task.check_keys(&KEYS, errors);
    let key = task.required_string("key", errors);
    let subject = task.required_string("subject", errors);
    let description = task.string("description", errors).map(|text| text.value).unwrap_or_default();
    let active_form = task.string("active_form", errors).map(|text| text.value);
    let owner = task.string("owner", errors).map(|owner| AgentName::new_unchecked(&owner.value));
    let blockers = task.strings("blocked_by", errors).map(|list| list.value).unwrap_or_default();
    let place = |name: &str| places.get(name).copied();
    let mut after: Vec<usize> = blockers.iter().filter_map(|blocker| place(&blocker.value)).collect();
    after.sort_unstable();
    after.dedup();
    let metadata = parse_metadata(task, errors);
    let (key, subject) = (key?.value, subject?.value);
    let mut all = Map::from_iter([("key".to_owned(), Value::from(key.as_str()))]);
    all.extend(metadata);
    Some(TaskSpec { key, subject, description, active_form, owner, blocked_by: after, metadata: all })
}

fn parse_metadata(task: &TableReader, errors: &mut ValidationErrors) -> Map<String, Value> {
    let mut all = Map::new();
    if let Some(command) = task.string("command", errors) {
        if command.value.trim().is_empty() {
            errors.push(command.at, "command is empty");
        }
        all.insert("command".to_owned(), Value::from(command.value));
    }
    if let Some(table) = task.table("metadata", "metadata", errors) {
        for ours in RESERVED_METADATA {
            if let Some(at) = table.key_offset(ours) {
                errors.push(at, format!("metadata cannot hold {ours:?}: the task list keeps its own there"));
            }
        }
        all.extend(table.json(errors));
    }
    all
}

fn has_shell() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("sh").is_file())
}
