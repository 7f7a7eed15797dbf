//! Checks the names in a run file. It finds duplicate names and keys, owners and blockers that do
//! not exist, and dependency cycles.
//!
//! The check reads the TOML tables itself, because the list of parsed tasks lacks every task with
//! an error. References to such a task would seem to be wrong.

use crate::run_file::table_reader::TableReader;
use crate::run_file::validation_errors::{Located, ValidationErrors, nearest_help};
use protocol::name::AgentName;
use std::collections::{HashMap, HashSet};

/// The key of a task and the keys of its blockers.
struct TaskReferences {
    key: Located<String>,
    blocked_by: Vec<Located<String>>,
}

pub(crate) fn check_references(
    members: &[TableReader],
    tasks: &[TableReader],
    errors: &mut ValidationErrors,
) {
    let names: Vec<Located<String>> =
        members.iter().filter_map(|member| string_without_errors(member, "name")).collect();
    let lowercase = |name: &Located<String>| name.value.to_ascii_lowercase();
    check_duplicates(&names, lowercase, "member", errors);
    let references: Vec<TaskReferences> = tasks.iter().filter_map(references_of).collect();
    let keys: Vec<Located<String>> = references.iter().map(|task| task.key.clone()).collect();
    check_duplicates(&keys, |key| key.value.clone(), "task", errors);
    for task in tasks {
        check_owner(task, &names, errors);
    }
    let known: HashSet<&str> = keys.iter().map(|key| key.value.as_str()).collect();
    for blocker in references.iter().flat_map(|task| &task.blocked_by) {
        if !known.contains(blocker.value.as_str()) {
            let near = nearest_help(&blocker.value, keys.iter().map(|key| &key.value));
            errors.push_missing(blocker.at, format!("there is no task {:?}{near}", blocker.value));
        }
    }
    check_cycles(&references, errors);
}

/// Reads a string. Errors are dropped here, because the parser of the table reports them.
fn string_without_errors(table: &TableReader, key: &str) -> Option<Located<String>> {
    table.string(key, &mut ValidationErrors::new(""))
}

fn references_of(task: &TableReader) -> Option<TaskReferences> {
    let blocked_by = task.strings("blocked_by", &mut ValidationErrors::new("")).map(|list| list.value);
    Some(TaskReferences {
        key: string_without_errors(task, "key")?,
        blocked_by: blocked_by.unwrap_or_default(),
    })
}

/// Adds an error for each duplicate. `what` says in the error what kind of thing is named.
fn check_duplicates(
    names: &[Located<String>],
    normalize: impl Fn(&Located<String>) -> String,
    what: &str,
    errors: &mut ValidationErrors,
) {
    let mut seen = HashSet::new();
    for name in names {
        if !seen.insert(normalize(name)) {
            errors.push(name.at, format!("there is a {what} {:?} already", name.value));
        }
    }
}

fn check_owner(task: &TableReader, names: &[Located<String>], errors: &mut ValidationErrors) {
    let Some(owner) = string_without_errors(task, "owner") else { return };
    let wanted = AgentName::new_unchecked(&owner.value);
    if !names.iter().any(|name| AgentName::new_unchecked(&name.value) == wanted) {
        let near = nearest_help(&owner.value, names.iter().map(|name| &name.value));
        errors.push_missing(owner.at, format!("the owner {:?} is no member of this file{near}", owner.value));
    }
}

/// How far the search for cycles has come with a task.
#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    Unvisited,
    InProgress,
    Done,
}

/// Adds one error for each dependency cycle, at the position of the blocker that closes the cycle.
/// The search is not recursive, because a long chain of blockers could overflow the stack.
fn check_cycles(tasks: &[TaskReferences], errors: &mut ValidationErrors) {
    let indexes: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(index, task)| (task.key.value.as_str(), index)).collect();
    let mut states = vec![VisitState::Unvisited; tasks.len()];
    for start in 0..tasks.len() {
        // The path from `start`: each task on it, and how many of that task's blockers were
        // visited.
        let mut path = if states[start] == VisitState::Unvisited { vec![(start, 0)] } else { Vec::new() };
        while let Some((task, visited)) = path.pop() {
            states[task] = VisitState::InProgress;
            let Some(blocker) = tasks[task].blocked_by.get(visited) else {
                states[task] = VisitState::Done;
                continue;
            };
            path.push((task, visited + 1));
            match indexes.get(blocker.value.as_str()) {
                Some(next) if states[*next] == VisitState::Unvisited => path.push((*next, 0)),
                Some(next) if states[*next] == VisitState::InProgress => {
                    let from = path.iter().position(|(task, _)| task == next).unwrap_or(0);
                    let cycle = path[from..].iter().map(|(task, _)| *task).chain([*next]);
                    let keys: Vec<&str> = cycle.map(|task| tasks[task].key.value.as_str()).collect();
                    errors.push(blocker.at, format!("a task would wait for itself: {}", keys.join(" → ")));
                }
                _ => {}
            }
        }
    }
}
