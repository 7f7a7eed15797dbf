//! Cycles of tasks that wait for each other. teamd refuses a link that would close a cycle, but
//! another program can write one into the files.

use super::task_file::{Task, TaskStatus};
use crate::id::TaskId;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Open tasks that wait for each other, so that none of them can start. Each task waits for the one
/// before it, and the first waits for the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCycle(Vec<TaskId>);

impl WaitCycle {
    /// The cycle of a path in which each task waits for the next, and the last for the first. The
    /// result begins with the lowest id.
    fn from_path(mut path: Vec<TaskId>) -> WaitCycle {
        path.reverse();
        let lowest = (0..path.len()).min_by_key(|at| path[*at]).unwrap_or(0);
        path.rotate_left(lowest);
        WaitCycle(path)
    }

    /// The tasks of the cycle.
    pub fn tasks(&self) -> &[TaskId] {
        &self.0
    }

    /// The arguments of the `teamctl` command that removes one link of the cycle.
    pub fn cut_command(&self) -> [String; 5] {
        let [first, last] =
            [self.0.first(), self.0.last()].map(|id| id.map_or(String::new(), TaskId::to_string));
        ["task".to_owned(), "update".to_owned(), first, "--remove-blocked-by".to_owned(), last]
    }
}

impl fmt::Display for WaitCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [task] => write!(f, "task {task} waits for itself"),
            tasks => {
                let mut ids: Vec<TaskId> = tasks.to_vec();
                ids.sort_unstable();
                let ids: Vec<String> = ids.iter().map(TaskId::to_string).collect();
                write!(f, "tasks {} wait for each other", ids.join(", "))
            }
        }
    }
}

/// The cycles among the pending tasks. A task in progress waits for no other. A task that is in
/// several cycles is in only one of the results.
pub fn wait_cycles<T: Borrow<Task>>(all: &[T]) -> Vec<WaitCycle> {
    let mut waits = tasks_without_start(all);
    let mut cycles = Vec::new();
    while let Some((first, _)) = waits.first_key_value() {
        // Each task that is left has a blocker that is left, unless that blocker was in a cycle that
        // is found already.
        let mut path = vec![*first];
        while let Some(blocker) =
            path.last().and_then(|last| waits.get(last)?.iter().find(|id| waits.contains_key(id)))
        {
            if let Some(at) = path.iter().position(|id| id == blocker) {
                cycles.push(WaitCycle::from_path(path.split_off(at)));
                break;
            }
            path.push(*blocker);
        }
        let found = cycles.last().map_or(&[][..], WaitCycle::tasks);
        path.iter().chain(found).for_each(|id| drop(waits.remove(id)));
    }
    cycles.sort_by_key(|cycle| cycle.0.first().copied());
    cycles
}

/// The pending tasks that can never start, with their blockers among these tasks. They are in a cycle
/// or wait for a task in a cycle.
fn tasks_without_start<T: Borrow<Task>>(all: &[T]) -> BTreeMap<TaskId, Vec<TaskId>> {
    let pending = all.iter().map(Borrow::borrow).filter(|task| task.status == TaskStatus::Pending);
    let mut waits: BTreeMap<TaskId, Vec<TaskId>> =
        pending.map(|task| (task.id, task.blocked_by.clone())).collect();
    loop {
        let ids: BTreeSet<TaskId> = waits.keys().copied().collect();
        for blockers in waits.values_mut() {
            blockers.retain(|id| ids.contains(id));
        }
        waits.retain(|_, blockers| !blockers.is_empty());
        if waits.len() == ids.len() {
            return waits;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32, status: &str, blocked_by: &[&str]) -> Task {
        let text = serde_json::json!({"id": id.to_string(), "subject": "x", "status": status, "blockedBy": blocked_by});
        Task::parse(&text.to_string()).unwrap()
    }

    #[test]
    fn cycles_among_open_tasks_are_found_once_each() {
        let tasks = [
            task(1, "pending", &["1"]),
            task(5, "pending", &["7"]),
            task(6, "pending", &["5"]),
            task(7, "pending", &["6"]),
            task(8, "pending", &["7"]),
        ];
        let cycles = wait_cycles(&tasks);
        let texts: Vec<String> = cycles.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["task 1 waits for itself", "tasks 5, 6, 7 wait for each other"]);
        assert_eq!(cycles[1].cut_command(), ["task", "update", "5", "--remove-blocked-by", "7"]);
        assert_eq!(cycles[0].cut_command(), ["task", "update", "1", "--remove-blocked-by", "1"]);
    }

    #[test]
    fn completed_task_and_one_in_progress_break_a_cycle() {
        for status in ["completed", "in_progress"] {
            let tasks = [task(5, "pending", &["6"]), task(6, status, &["5"])];
            assert_eq!(wait_cycles(&tasks), []);
        }
    }

    #[test]
    fn long_chain_behind_a_cycle_is_read_quickly() {
        let mut tasks: Vec<Task> =
            (2..5_000).map(|id| task(id, "pending", &[&(id - 1).to_string()])).collect();
        assert_eq!(wait_cycles(&tasks), []);
        tasks.insert(0, task(1, "pending", &["2"]));
        assert_eq!(wait_cycles(&tasks).len(), 1);
    }
}
