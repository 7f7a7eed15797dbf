//! Cycles of tasks that wait for each other. teamd refuses a dependency that would close a cycle,
//! but another program can write such a dependency into the files.

use super::task_and_task_status::{Task, TaskStatus, dependents};
use crate::member_task_and_request_ids::TaskId;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

/// Open tasks that wait for each other, so that none of them can start. Each task waits for the one
/// before it, and the first waits for the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitCycle {
    tasks: Vec<TaskId>,
}

impl WaitCycle {
    /// Makes a cycle from a path in which each task waits for the next one, and the last task for
    /// the first. The cycle begins with the lowest id.
    fn from_path(mut path: Vec<TaskId>) -> WaitCycle {
        path.reverse();
        let lowest = (0..path.len()).min_by_key(|at| path[*at]).unwrap_or(0);
        path.rotate_left(lowest);
        WaitCycle { tasks: path }
    }

    /// The tasks of the cycle.
    pub fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    /// The arguments of the `teamctl` command that removes one link of the cycle.
    pub fn cut_command(&self) -> [String; 5] {
        let [first, last] =
            [self.tasks.first(), self.tasks.last()].map(|id| id.map_or(String::new(), TaskId::to_string));
        ["task".to_owned(), "update".to_owned(), first, "--remove-blocked-by".to_owned(), last]
    }
}

impl fmt::Display for WaitCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tasks.as_slice() {
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

/// The cycles among the pending tasks. A task in progress is in no cycle, because it no longer
/// waits. Each task is in at most one result: of two cycles that share a task, only one is found.
pub fn wait_cycles<T: Borrow<Task>>(all: &[T]) -> Vec<WaitCycle> {
    let pending = all.iter().map(Borrow::borrow).filter(|task| task.status == TaskStatus::Pending);
    let mut unvisited: BTreeMap<TaskId, &[TaskId]> =
        pending.map(|task| (task.id, task.blocked_by.as_slice())).collect();
    let mut cycles = Vec::new();
    while let Some((first, _)) = unvisited.first_key_value() {
        let mut path = vec![*first];
        while let Some(last) = path.last() {
            let blocker = unvisited[last].iter().find(|id| unvisited.contains_key(id));
            let visited = match blocker.map(|id| (*id, path.iter().position(|other| other == id))) {
                Some((blocker, None)) => {
                    path.push(blocker);
                    continue;
                }
                Some((_, Some(at))) => {
                    let cycle = path.split_off(at);
                    cycles.push(WaitCycle::from_path(cycle.clone()));
                    cycle
                }
                None => path.split_off(path.len() - 1),
            };
            for id in visited {
                unvisited.remove(&id);
            }
        }
    }
    cycles.sort_by_key(|cycle| cycle.tasks.first().copied());
    cycles
}

/// The cycle that would exist if `blocked` depended on `blocker`: a path of task ids from `blocked`
/// to `blocker` and back. `None` if there would be no cycle.
pub fn find_cycle<T: Borrow<Task>>(all: &[T], blocker: TaskId, blocked: TaskId) -> Option<Vec<TaskId>> {
    if blocker == blocked {
        return Some(vec![blocker, blocked]);
    }
    let waiting = dependents(all);
    let mut came_from = BTreeMap::from([(blocked, blocked)]);
    let mut open = vec![blocked];
    while let Some(at) = open.pop() {
        if at == blocker {
            return Some(path_between(&came_from, blocked, blocker));
        }
        for next in waiting.get(&at).into_iter().flatten() {
            if let Entry::Vacant(unvisited) = came_from.entry(*next) {
                unvisited.insert(at);
                open.push(*next);
            }
        }
    }
    None
}

fn path_between(came_from: &BTreeMap<TaskId, TaskId>, from: TaskId, to: TaskId) -> Vec<TaskId> {
    let mut path = vec![from, to];
    while let Some(at) = path.last().copied().filter(|at| *at != from) {
        path.push(came_from[&at]);
    }
    path.reverse();
    path
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
    fn cycle_that_waits_for_another_cycle_is_found_too() {
        let tasks = [
            task(1, "pending", &["2", "4"]),
            task(2, "pending", &["3"]),
            task(3, "pending", &["2"]),
            task(4, "pending", &["1"]),
        ];
        let texts: Vec<String> = wait_cycles(&tasks).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["tasks 1, 4 wait for each other", "tasks 2, 3 wait for each other"]);
    }

    #[test]
    fn completed_task_and_one_in_progress_break_a_cycle() {
        for status in ["completed", "in_progress"] {
            let tasks = [task(5, "pending", &["6"]), task(6, status, &["5"])];
            assert_eq!(wait_cycles(&tasks), []);
        }
    }

    #[test]
    fn tasks_behind_a_cycle_are_not_in_it() {
        let mut tasks: Vec<Task> =
            (2..5_000).map(|id| task(id, "pending", &[&(id - 1).to_string()])).collect();
        assert_eq!(wait_cycles(&tasks), []);
        tasks.insert(0, task(1, "pending", &["2"]));
        let cycles: Vec<String> = wait_cycles(&tasks).iter().map(ToString::to_string).collect();
        assert_eq!(cycles, ["tasks 1, 2 wait for each other"]);
    }

    #[test]
    fn cycle_is_returned_as_a_path() {
        let all = [task(1, "pending", &[]), task(2, "pending", &["1"]), task(3, "pending", &["2"])];
        let [a, b, c] = [all[0].id, all[1].id, all[2].id];
        assert_eq!(find_cycle(&all, c, a), Some(vec![a, b, c, a]));
        assert_eq!(find_cycle(&all, b, a), Some(vec![a, b, a]));
        assert_eq!(find_cycle(&all, a, a), Some(vec![a, a]));
        assert_eq!(find_cycle(&all, a, c), None);
    }
}
