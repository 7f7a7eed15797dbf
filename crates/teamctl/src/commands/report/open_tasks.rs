//! Lists the open tasks, each with the reason why it is open. A task is open if it is not
//! completed, unless it failed in the period of the report.

use protocol::task::{Task, TaskStatus};
use runner::{TaskOutcome, TaskResult, run_file_key};

/// Returns the open tasks among `tasks`, the team's task list. `finished` are the tasks that have
/// ended in the period of the report. A task that failed before this period counts as open.
pub(super) fn open_tasks(tasks: &[Task], finished: &[TaskResult]) -> Vec<TaskResult> {
    let is_open = |task: &&Task| {
        !task.is_internal()
            && !task.status.is_closed()
            && !finished.iter().any(|finished| finished.id == Some(task.id))
    };
    let result = |task: &Task| TaskResult {
        key: run_file_key(task).map(str::to_owned),
        id: Some(task.id),
        subject: task.subject.clone(),
        owner: task.owner.as_ref().map(ToString::to_string),
        outcome: TaskOutcome::NotDone,
        seconds: None,
        reason: Some(reason(task, tasks)),
        answer: None,
    };
    tasks.iter().filter(is_open).map(result).collect()
}

/// Why the task is not completed.
fn reason(task: &Task, tasks: &[Task]) -> String {
    let blockers: Vec<String> = task.open_blockers(tasks).iter().map(ToString::to_string).collect();
    match (&task.status, task.failure(), blockers.as_slice()) {
        (_, Some(failure), _) => format!("failed earlier: {failure}"),
        (TaskStatus::InProgress, None, _) => "in progress".to_owned(),
        (_, None, []) => "not begun".to_owned(),
        (_, None, [blocker]) => format!("waits for task {blocker}"),
        (_, None, blockers) => format!("waits for tasks {}", blockers.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_open_task_has_a_reason() {
        let task = |id: u32, status: &str, more: &str| {
            Task::parse(&format!(r#"{{"id":"{id}","subject":"s{id}","status":"{status}"{more}}}"#)).unwrap()
        };
        let tasks = [
            task(1, "completed", ""),
            task(2, "in_progress", ""),
            task(3, "pending", r#","blockedBy":["1"]"#),
            task(4, "pending", r#","blockedBy":["2"]"#),
            task(5, "pending", r#","blockedBy":["2","3"]"#),
            task(6, "in_progress", r#","metadata":{"failure":"exit 1"}"#),
            task(7, "pending", r#","metadata":{"_internal":true}"#),
        ];
        let summary = |finished: &[TaskResult]| -> Vec<String> {
            let results = open_tasks(&tasks, finished).into_iter();
            results.map(|result| format!("{} {}", result.subject, result.reason.unwrap())).collect()
        };
        let all = [
            "s2 in progress",
            "s3 not begun",
            "s4 waits for task 2",
            "s5 waits for tasks 2, 3",
            "s6 failed earlier: exit 1",
        ];
        assert_eq!(summary(&[]), all);
        let failed = open_tasks(&tasks, &[]).pop().unwrap();
        assert_eq!(summary(&[failed]), all[..4]);
    }
}
