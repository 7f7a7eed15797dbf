//! What the tables say about each other: names and keys that are there twice, owners, blockers, circles.
//!
//! It looks at the words as they stand, so that one flaw in a task does not hide those of its neighbours.

use super::flaw::{At, Flaws, near};
use super::section::Section;
use protocol::name::AgentName;
use std::collections::{HashMap, HashSet};

/// The words of a task that name something else.
struct Links {
    key: At<String>,
    blocked_by: Vec<At<String>>,
}

pub(super) fn check(members: &[Section], tasks: &[Section], flaws: &mut Flaws) {
    let names: Vec<At<String>> = members.iter().filter_map(|member| quiet(member, "name")).collect();
    let folded = |name: &At<String>| name.value.to_ascii_lowercase();
    twice(&names, folded, "member", flaws);
    let links: Vec<Links> = tasks.iter().filter_map(of).collect();
    let keys: Vec<At<String>> = links.iter().map(|task| task.key.clone()).collect();
    twice(&keys, |key| key.value.clone(), "task", flaws);
    for task in tasks {
        owner(task, &names, flaws);
    }
    let known: HashSet<&str> = keys.iter().map(|key| key.value.as_str()).collect();
    for blocker in links.iter().flat_map(|task| &task.blocked_by) {
        if !known.contains(blocker.value.as_str()) {
            let near = near(&blocker.value, keys.iter().map(|key| &key.value));
            flaws.missing(blocker.at, format!("there is no task {:?}{near}", blocker.value));
        }
    }
    circles(&links, flaws);
}

/// What is wrong with the word itself is told where it is read.
fn quiet(table: &Section, key: &str) -> Option<At<String>> {
    table.string(key, &mut Flaws::of(""))
}

fn of(task: &Section) -> Option<Links> {
    let blocked_by = task.strings("blocked_by", &mut Flaws::of("")).map(|list| list.value);
    Some(Links { key: quiet(task, "key")?, blocked_by: blocked_by.unwrap_or_default() })
}

fn twice(words: &[At<String>], alike: impl Fn(&At<String>) -> String, what: &str, flaws: &mut Flaws) {
    let mut seen = HashSet::new();
    for word in words {
        if !seen.insert(alike(word)) {
            flaws.add(word.at, format!("there is a {what} {:?} already", word.value));
        }
    }
}

fn owner(task: &Section, names: &[At<String>], flaws: &mut Flaws) {
    let Some(owner) = quiet(task, "owner") else { return };
    let wanted = AgentName::new_unchecked(&owner.value);
    if !names.iter().any(|name| AgentName::new_unchecked(&name.value) == wanted) {
        let near = near(&owner.value, names.iter().map(|name| &name.value));
        flaws.missing(owner.at, format!("the owner {:?} is no member of this file{near}", owner.value));
    }
}

/// How far the search for circles is with a task.
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    New,
    OnTheWay,
    Done,
}

/// Each circle once, at the word that closes it. Without recursion: a chain may be as long as the file.
fn circles(tasks: &[Links], flaws: &mut Flaws) {
    let places: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(place, task)| (task.key.value.as_str(), place)).collect();
    let mut marks = vec![Mark::New; tasks.len()];
    for start in 0..tasks.len() {
        // The way so far: each task, and how many of its blockers were looked at.
        let mut way = if marks[start] == Mark::New { vec![(start, 0)] } else { Vec::new() };
        while let Some((at, looked)) = way.pop() {
            marks[at] = Mark::OnTheWay;
            let Some(blocker) = tasks[at].blocked_by.get(looked) else {
                marks[at] = Mark::Done;
                continue;
            };
            way.push((at, looked + 1));
            match places.get(blocker.value.as_str()) {
                Some(next) if marks[*next] == Mark::New => way.push((*next, 0)),
                Some(next) if marks[*next] == Mark::OnTheWay => {
                    let from = way.iter().position(|(place, _)| place == next).unwrap_or(0);
                    let round = way[from..].iter().map(|(place, _)| *place).chain([*next]);
                    let words: Vec<&str> = round.map(|place| tasks[place].key.value.as_str()).collect();
                    flaws.add(blocker.at, format!("a task would wait for itself: {}", words.join(" → ")));
                }
                _ => {}
            }
        }
    }
}
