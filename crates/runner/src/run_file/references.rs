//! What the tables say about each other: names and keys that are there twice, owners, blockers, circles.
//!
//! It looks at the words as they stand, so that one error in a task does not hide those of its neighbours.

use crate::run_file::table_reader::TableReader;
use crate::run_file::validation_error::{Located, ValidationErrors, nearest_help};
use protocol::name::AgentName;
use std::collections::{HashMap, HashSet};

/// The words of a task that name something else.
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
    let folded = |name: &Located<String>| name.value.to_ascii_lowercase();
    check_duplicates(&names, folded, "member", errors);
    let links: Vec<TaskReferences> = tasks.iter().filter_map(references_of).collect();
    let keys: Vec<Located<String>> = links.iter().map(|task| task.key.clone()).collect();
    check_duplicates(&keys, |key| key.value.clone(), "task", errors);
    for task in tasks {
        check_owner(task, &names, errors);
    }
    let known: HashSet<&str> = keys.iter().map(|key| key.value.as_str()).collect();
    for blocker in links.iter().flat_map(|task| &task.blocked_by) {
        if !known.contains(blocker.value.as_str()) {
            let near = nearest_help(&blocker.value, keys.iter().map(|key| &key.value));
            errors.push_missing(blocker.at, format!("there is no task {:?}{near}", blocker.value));
        }
    }
    check_cycles(&links, errors);
}

/// What is wrong with the word itself is told where it is read.
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

fn check_duplicates(
    words: &[Located<String>],
    alike: impl Fn(&Located<String>) -> String,
    what: &str,
    errors: &mut ValidationErrors,
) {
    let mut seen = HashSet::new();
    for word in words {
        if !seen.insert(alike(word)) {
            errors.push(word.at, format!("there is a {what} {:?} already", word.value));
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

/// How far the search for circles is with a task.
#[derive(Clone, Copy, PartialEq)]
enum VisitState {
    Unvisited,
    InProgress,
    Done,
}

/// Each circle once, at the word that closes it. Without recursion: a chain may be as long as the file.
fn check_cycles(tasks: &[TaskReferences], errors: &mut ValidationErrors) {
    let places: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(place, task)| (task.key.value.as_str(), place)).collect();
    let mut marks = vec![VisitState::Unvisited; tasks.len()];
    for start in 0..tasks.len() {
        // The way so far: each task, and how many of its blockers were looked at.
        let mut way = if marks[start] == VisitState::Unvisited { vec![(start, 0)] } else { Vec::new() };
        while let Some((at, looked)) = way.pop() {
            marks[at] = VisitState::InProgress;
            let Some(blocker) = tasks[at].blocked_by.get(looked) else {
                marks[at] = VisitState::Done;
                continue;
            };
            way.push((at, looked + 1));
            match places.get(blocker.value.as_str()) {
                Some(next) if marks[*next] == VisitState::Unvisited => way.push((*next, 0)),
                Some(next) if marks[*next] == VisitState::InProgress => {
                    let from = way.iter().position(|(place, _)| place == next).unwrap_or(0);
                    let round = way[from..].iter().map(|(place, _)| *place).chain([*next]);
                    let words: Vec<&str> = round.map(|place| tasks[place].key.value.as_str()).collect();
                    errors.push(blocker.at, format!("a task would wait for itself: {}", words.join(" → ")));
                }
                _ => {}
            }
        }
    }
}
