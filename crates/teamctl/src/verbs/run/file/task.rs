//! The tasks of a run file.

use super::flaw::Flaws;
use super::section::Section;
use protocol::control::SpawnRequest;
use protocol::name::AgentName;
use protocol::turn_program::TurnProgram;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// One task, as it is to be made.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::verbs::run) struct Plan {
    /// What the file calls it; also in its metadata, so that it is found again.
    pub(in crate::verbs::run) key: String,
    /// What to do.
    pub(in crate::verbs::run) subject: String,
    /// More of it.
    pub(in crate::verbs::run) description: String,
    /// What is shown while it runs.
    pub(in crate::verbs::run) active_form: Option<String>,
    /// The member that alone may take it.
    pub(in crate::verbs::run) owner: Option<AgentName>,
    /// The places, in the list of all tasks, of those it waits for.
    pub(in crate::verbs::run) after: Vec<usize>,
    /// Anything else, with `key` and `command`.
    pub(in crate::verbs::run) metadata: Map<String, Value>,
}

const KEYS: [&str; 8] =
    ["key", "subject", "description", "active_form", "owner", "blocked_by", "command", "metadata"];
/// What the task list itself keeps in the metadata.
const OURS: [&str; 7] = ["key", "command", "failure", "_internal", "attempts", "retried", "left"];

/// All tasks; one with a flaw is left out, and the flaw says so.
pub(super) fn plans(tasks: &[Section], flaws: &mut Flaws) -> Vec<Plan> {
    if tasks.iter().any(|task| task.place("command").is_some()) && !has_shell() {
        let at = tasks.iter().find_map(|task| task.place("command")).unwrap_or(0);
        flaws.add(at, "cannot run a command: there is no sh in the PATH");
    }
    let places = tasks.iter().enumerate().filter_map(|(place, task)| Some((key(task)?, place)));
    let places: HashMap<String, usize> = places.collect();
    tasks.iter().filter_map(|task| plan(task, &places, flaws)).collect()
}

/// A worker runs commands, and fails a task that has none.
pub(super) fn refuse_what_no_worker_can_do(tasks: &[Section], members: &[SpawnRequest], flaws: &mut Flaws) {
    for task in tasks.iter().filter(|task| task.place("command").is_none()) {
        let owner =
            task.string("owner", &mut Flaws::of("")).map(|owner| AgentName::new_unchecked(&owner.value));
        let takes = |member: &&SpawnRequest| owner.as_ref().is_none_or(|owner| member.name == *owner);
        let mut takers = members.iter().filter(takes).peekable();
        if takers.peek().is_some() && takers.all(needs_command) {
            flaws.missing(task.at, "a task for workers alone needs the key command: they do nothing else");
        }
    }
}

fn needs_command(member: &SpawnRequest) -> bool {
    matches!(&member.turns, Some(TurnProgram::Worker(worker)) if worker.run.is_none())
}

/// Without a word on what is wrong with it: [`plan`] says that.
fn key(task: &Section) -> Option<String> {
    task.string("key", &mut Flaws::of("")).map(|key| key.value)
}

fn plan(task: &Section, places: &HashMap<String, usize>, flaws: &mut Flaws) -> Option<Plan> {
    task.takes(&KEYS, flaws);
    let key = task.required("key", flaws);
    let subject = task.required("subject", flaws);
    let description = task.string("description", flaws).map(|text| text.value).unwrap_or_default();
    let active_form = task.string("active_form", flaws).map(|text| text.value);
    let owner = task.string("owner", flaws).map(|owner| AgentName::new_unchecked(&owner.value));
    let blockers = task.strings("blocked_by", flaws).map(|list| list.value).unwrap_or_default();
    let place = |name: &str| places.get(name).copied();
    let mut after: Vec<usize> = blockers.iter().filter_map(|blocker| place(&blocker.value)).collect();
    after.sort_unstable();
    after.dedup();
    let metadata = metadata(task, flaws);
    let (key, subject) = (key?.value, subject?.value);
    let mut all = Map::from_iter([("key".to_owned(), Value::from(key.as_str()))]);
    all.extend(metadata);
    Some(Plan { key, subject, description, active_form, owner, after, metadata: all })
}

fn metadata(task: &Section, flaws: &mut Flaws) -> Map<String, Value> {
    let mut all = Map::new();
    if let Some(command) = task.string("command", flaws) {
        if command.value.trim().is_empty() {
            flaws.add(command.at, "command is empty");
        }
        all.insert("command".to_owned(), Value::from(command.value));
    }
    if let Some(table) = task.table("metadata", "metadata", flaws) {
        for ours in OURS {
            if let Some(at) = table.place(ours) {
                flaws.add(at, format!("metadata cannot hold {ours:?}: the task list keeps its own there"));
            }
        }
        all.extend(table.json(flaws));
    }
    all
}

fn has_shell() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("sh").is_file())
}
