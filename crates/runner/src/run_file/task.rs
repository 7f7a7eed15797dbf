//! Parses the tables `[[task]]` of a run file.

use crate::run_file::toml_table_reader::TableReader;
use crate::run_file::validation_errors::ValidationErrors;
use protocol::control_socket::SpawnRequest;
use protocol::task::{ABANDONED_KEY, ANSWER_KEY, ONCE_KEY, RETRIES_KEY, RUN_OWNER_KEY};
use protocol::team_and_member_names::MemberName;
use protocol::worker_or_program_that_runs_turns::TurnProgram;
use serde_json::{Map, Value};
use std::collections::{BTreeSet, HashMap};

/// A task of a run file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskSpec {
    /// The task's key. It is stored in the task's metadata, so that a later run finds the task.
    pub(crate) key: String,
    pub(crate) subject: String,
    /// The description; may be empty.
    pub(crate) description: String,
    /// The text that is shown while the task is in progress.
    pub(crate) active_form: Option<String>,
    /// The only member that may do the task. `None` if any member may do it.
    pub(crate) owner: Option<MemberName>,
    /// The indexes of the task's blockers in the list of all tasks, sorted.
    pub(crate) blocked_by: Vec<usize>,
    /// The file's metadata, with `key`, `command`, `run_owner` and `once`.
    pub(crate) metadata: Map<String, Value>,
}

impl TaskSpec {
    /// The owner with which the task is created. `None` if the owner is a member that is started
    /// only for this task. Such a member does not exist yet, and becomes the owner when it claims
    /// the task.
    pub(crate) fn first_owner(&self) -> Option<MemberName> {
        self.owner.clone().filter(|_| !self.metadata.contains_key(ONCE_KEY))
    }
}

const KEYS: [&str; 8] =
    ["key", "subject", "description", "active_form", "owner", "blocked_by", "command", "metadata"];
/// Metadata keys that teamd's programs use themselves.
const RESERVED_METADATA: [&str; 10] = [
    "key",
    "command",
    "failure",
    "_internal",
    "attempts",
    RETRIES_KEY,
    ABANDONED_KEY,
    RUN_OWNER_KEY,
    ONCE_KEY,
    ANSWER_KEY,
];

/// Parses all tasks. If a task is invalid, errors are added and the task is left out.
pub(crate) fn parse_tasks(
    tasks: &[TableReader],
    once_members: &BTreeSet<MemberName>,
    errors: &mut ValidationErrors,
) -> Vec<TaskSpec> {
    if tasks.iter().any(|task| task.key_offset("command").is_some()) && !has_shell() {
        let offset = tasks.iter().find_map(|task| task.key_offset("command")).unwrap_or(0);
        errors.push(offset, "cannot run a command: there is no sh in the PATH");
    }
    let indexes =
        tasks.iter().enumerate().filter_map(|(index, task)| Some((key_without_errors(task)?, index)));
    let indexes: HashMap<String, usize> = indexes.collect();
    let mut specs: Vec<TaskSpec> =
        tasks.iter().filter_map(|task| parse_task(task, &indexes, errors)).collect();
    for spec in specs.iter_mut().filter(|spec| spec.owner.iter().any(|owner| once_members.contains(owner))) {
        spec.metadata.insert(ONCE_KEY.to_owned(), Value::Bool(true));
    }
    specs
}

/// Checks that some member may claim the tasks without an owner. A member of the kind `once` may
/// not: it works only on the task for which it is started.
pub(crate) fn check_unowned_tasks(
    tasks: &[TableReader],
    members: &[SpawnRequest],
    once_members: &BTreeSet<MemberName>,
    errors: &mut ValidationErrors,
) {
    if members.is_empty() || members.iter().any(|member| !once_members.contains(&member.name)) {
        return;
    }
    for task in tasks.iter().filter(|task| task.key_offset("owner").is_none()) {
        errors.push_missing(
            task.offset,
            "a task needs the key owner if each member is of kind \"once\": no other member claims it",
        );
    }
}

/// Checks that every task which only built-in workers can claim has a command. A built-in worker
/// runs the command of a task and nothing else, so it would mark a task without a command as
/// failed.
pub(crate) fn check_worker_commands(
    tasks: &[TableReader],
    members: &[SpawnRequest],
    errors: &mut ValidationErrors,
) {
    for task in tasks.iter().filter(|task| task.key_offset("command").is_none()) {
        let owner = task
            .string("owner", &mut ValidationErrors::new(""))
            .map(|owner| MemberName::new_unchecked(&owner.value));
        let can_claim = |member: &&SpawnRequest| owner.as_ref().is_none_or(|owner| member.name == *owner);
        let mut claimers = members.iter().filter(can_claim).peekable();
        if claimers.peek().is_some() && claimers.all(needs_command) {
            errors.push_missing(
                task.offset,
                "a task for workers alone needs the key command: they do nothing else",
            );
        }
    }
}

fn needs_command(member: &SpawnRequest) -> bool {
    matches!(&member.turns, Some(TurnProgram::Worker(worker)) if worker.run.is_none())
}

/// Reads the task's key. Errors are dropped here, because [`parse_task`] reports them.
fn key_without_errors(task: &TableReader) -> Option<String> {
    task.string("key", &mut ValidationErrors::new("")).map(|key| key.value)
}

fn parse_task(
    task: &TableReader,
    indexes: &HashMap<String, usize>,
    errors: &mut ValidationErrors,
) -> Option<TaskSpec> {
    task.check_keys(&KEYS, errors);
    let key = task.required_string("key", errors);
    let subject = task.required_string("subject", errors);
    let description = task.string("description", errors).map(|text| text.value).unwrap_or_default();
    let active_form = task.string("active_form", errors).map(|text| text.value);
    let owner = task.string("owner", errors).map(|owner| MemberName::new_unchecked(&owner.value));
    let blockers = task.strings("blocked_by", errors).map(|list| list.value).unwrap_or_default();
    let index = |key: &str| indexes.get(key).copied();
    let mut blocked_by: Vec<usize> = blockers.iter().filter_map(|blocker| index(&blocker.value)).collect();
    blocked_by.sort_unstable();
    blocked_by.dedup();
    let other_metadata = parse_metadata(task, errors);
    let (key, subject) = (key?.value, subject?.value);
    let mut metadata = Map::from_iter([("key".to_owned(), Value::from(key.as_str()))]);
    metadata.extend(owner.iter().map(|owner| (RUN_OWNER_KEY.to_owned(), owner.as_str().into())));
    metadata.extend(other_metadata);
    Some(TaskSpec { key, subject, description, active_form, owner, blocked_by, metadata })
}

/// Reads the task's metadata, which does not contain the task's key yet.
fn parse_metadata(task: &TableReader, errors: &mut ValidationErrors) -> Map<String, Value> {
    let mut metadata = Map::new();
    if let Some(command) = task.string("command", errors) {
        if command.value.trim().is_empty() {
            errors.push(command.offset, "command is empty");
        }
        metadata.insert("command".to_owned(), Value::from(command.value));
    }
    if let Some(table) = task.table("metadata", "metadata", errors) {
        for reserved_key in RESERVED_METADATA {
            if let Some(offset) = table.key_offset(reserved_key) {
                errors.push(
                    offset,
                    format!("metadata cannot hold {reserved_key:?}: the task list keeps its own there"),
                );
            }
        }
        metadata.extend(table.json(errors));
    }
    metadata
}

fn has_shell() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("sh").is_file())
}
