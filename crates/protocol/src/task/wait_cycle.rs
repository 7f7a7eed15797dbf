//! Cycles of tasks that wait for each other. teamd refuses a link that would close a cycle, but
//! another program can write one into the files.

use super::task_file::{Task, find_cycle};
use crate::id::TaskId;
use std::borrow::Borrow;
use std::fmt;

/// Open tasks that wait for each other, so that none of them can start. Each task waits for the one
/// before it, and the first waits for the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitCycle(Vec<TaskId>);

impl WaitCycle {
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

/// The cycles among the open tasks. A task that is in several cycles is in only one of the results.
pub fn wait_cycles<T: Borrow<Task>>(all: &[T]) -> Vec<WaitCycle> {
    let open: Vec<&Task> = all.iter().map(Borrow::borrow).filter(|task| !task.status.is_closed()).collect();
    let mut cycles: Vec<WaitCycle> = Vec::new();
    for task in &open {
        if cycles.iter().any(|cycle| cycle.0.contains(&task.id)) {
            continue;
        }
        let blockers = task.open_blockers(&open);
        let cycle = blockers.iter().find_map(|blocker| find_cycle(&open, *blocker, task.id));
        cycles.extend(cycle.map(|mut path| {
            // The path ends where it began.
            path.pop();
            WaitCycle(path)
        }));
    }
    cycles
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
            task(7, "in_progress", &["6"]),
            task(8, "pending", &["7"]),
        ];
        let cycles = wait_cycles(&tasks);
        let texts: Vec<String> = cycles.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["task 1 waits for itself", "tasks 5, 6, 7 wait for each other"]);
        assert_eq!(cycles[1].cut_command(), ["task", "update", "5", "--remove-blocked-by", "7"]);
        assert_eq!(cycles[0].cut_command(), ["task", "update", "1", "--remove-blocked-by", "1"]);
    }

    #[test]
    fn completed_task_breaks_a_cycle() {
        let tasks = [task(5, "pending", &["6"]), task(6, "completed", &["5"])];
        assert_eq!(wait_cycles(&tasks), []);
    }
}
