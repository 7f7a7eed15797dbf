//! Checks the names in a run file. It finds duplicate names and keys, owners and blockers that do
//! not exist, and dependency cycles.
//!
//! The check reads the TOML tables and not the list of parsed tasks. That list lacks every task
//! with an error, so a reference to such a task would be reported as an unknown name.

use crate::run_file::toml_table_reader::TableReader;
use crate::run_file::validation_errors::{Located, ValidationErrors, nearest_help};
use protocol::team_and_member_names::MemberName;
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
    for member in members {
        check_task_of_once_member(member, tasks, errors);
    }
    let known_keys: HashSet<&str> = keys.iter().map(|key| key.value.as_str()).collect();
    for blocker in references.iter().flat_map(|task| &task.blocked_by) {
        if !known_keys.contains(blocker.value.as_str()) {
            let suggestion = nearest_help(&blocker.value, keys.iter().map(|key| &key.value));
            errors.push_missing(blocker.offset, format!("there is no task {:?}{suggestion}", blocker.value));
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

/// Adds an error for each duplicate. `kind` says in the error what kind of thing is named.
fn check_duplicates(
    names: &[Located<String>],
    normalize: impl Fn(&Located<String>) -> String,
    kind: &str,
    errors: &mut ValidationErrors,
) {
    let mut known_names = HashSet::new();
    for name in names {
        if !known_names.insert(normalize(name)) {
            errors.push(name.offset, format!("there is a {kind} {:?} already", name.value));
        }
    }
}

fn check_owner(task: &TableReader, names: &[Located<String>], errors: &mut ValidationErrors) {
    let Some(owner) = string_without_errors(task, "owner") else { return };
    let owner_name = MemberName::new_unchecked(&owner.value);
    if !names.iter().any(|name| MemberName::new_unchecked(&name.value) == owner_name) {
        let suggestion = nearest_help(&owner.value, names.iter().map(|name| &name.value));
        errors.push_missing(
            owner.offset,
            format!("the owner {:?} is no member of this file{suggestion}", owner.value),
        );
    }
}

/// A member of kind once owns exactly one task.
fn check_task_of_once_member(member: &TableReader, tasks: &[TableReader], errors: &mut ValidationErrors) {
    let (Some(kind), Some(name)) = (member.key_offset("kind"), string_without_errors(member, "name")) else {
        return;
    };
    let name = MemberName::new_unchecked(&name.value);
    let owners = tasks.iter().filter_map(|task| string_without_errors(task, "owner"));
    let count = owners.filter(|owner| MemberName::new_unchecked(&owner.value) == name).count();
    if count != 1 {
        let message = format!("a member of kind \"once\" owns one task, and {name} owns {count}");
        errors.push_missing(kind, message);
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
        // The path of the depth-first search that begins at the task `start`. Each pair has the
        // index of a task, and how many of this task's blockers the search has visited.
        let mut path = if states[start] == VisitState::Unvisited { vec![(start, 0)] } else { Vec::new() };
        while let Some((task, visited)) = path.pop() {
            states[task] = VisitState::InProgress;
            let Some(blocker) = tasks[task].blocked_by.get(visited) else {
                states[task] = VisitState::Done;
                continue;
            };
            path.push((task, visited + 1));
            match indexes.get(blocker.value.as_str()) {
                Some(blocker_index) if states[*blocker_index] == VisitState::Unvisited => {
                    path.push((*blocker_index, 0));
                }
                Some(blocker_index) if states[*blocker_index] == VisitState::InProgress => {
                    let cycle_start = path.iter().position(|(task, _)| task == blocker_index).unwrap_or(0);
                    let cycle = path[cycle_start..].iter().map(|(task, _)| *task).chain([*blocker_index]);
                    let keys: Vec<&str> = cycle.map(|task| tasks[task].key.value.as_str()).collect();
                    errors
                        .push(blocker.offset, format!("a task would wait for itself: {}", keys.join(" → ")));
                }
                _ => {}
            }
        }
    }
}
