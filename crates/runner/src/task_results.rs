//! The results of a run, one for each task, for people and as JSON.

use crate::decide_task_retries::{RunDecision, TaskFate, run_file_key};
use crate::event_lines_and_task_times::TaskTimes;
use crate::run_file::RunFile;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use serde::Serialize;
use std::collections::BTreeMap;
use store::now;

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// A member completed the task.
    Completed,
    /// The work failed, and the run did not repeat it.
    Failed,
    /// The run ended before the task did.
    NotDone,
    /// The task was deleted.
    Deleted,
}

impl TaskOutcome {
    /// The outcome as a text for people.
    pub fn text(self) -> &'static str {
        match self {
            TaskOutcome::Completed => "completed",
            TaskOutcome::Failed => "failed",
            TaskOutcome::NotDone => "not done",
            TaskOutcome::Deleted => "deleted",
        }
    }
}

/// The result of one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskResult {
    /// The task's key in the file. `None` for a task that an agent added.
    pub key: Option<String>,
    /// The task's id. `None` for a task that was never created.
    pub id: Option<TaskId>,
    /// Subject of the task.
    pub subject: String,
    /// The member that worked on the task. `None` if no member did.
    pub owner: Option<String>,
    /// How the task ended.
    pub outcome: TaskOutcome,
    /// How long an agent worked on the task, in seconds. `None` if no agent worked on it.
    pub seconds: Option<f64>,
    /// Why the task is not completed. `None` if it is completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The answer of a member that was started for the task. `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The results of all tasks. Tasks of the run file come first, in the order of the file, and tasks
/// that agents added come last.
///
/// `tasks` has every task that was in any snapshot of the run.
pub(crate) fn task_results(
    file: &RunFile,
    tasks: &BTreeMap<TaskId, Task>,
    decision: &RunDecision,
    times: &TaskTimes,
) -> Vec<TaskResult> {
    let to_result = |task: &Task| task_result(task, decision.fates.get(&task.id), times);
    let tasks_by_key: BTreeMap<&str, &Task> =
        tasks.values().filter_map(|task| Some((run_file_key(task)?, task))).collect();
    let planned_results = file.tasks.iter().map(|spec| match tasks_by_key.get(spec.key.as_str()) {
        Some(task) => to_result(task),
        None => TaskResult {
            key: Some(spec.key.clone()),
            id: None,
            subject: spec.subject.clone(),
            owner: spec.owner.as_ref().map(ToString::to_string),
            outcome: TaskOutcome::NotDone,
            seconds: None,
            reason: Some("it was never made".to_owned()),
            answer: None,
        },
    });
    let is_planned =
        |task: &&Task| run_file_key(task).is_some_and(|key| file.tasks.iter().any(|spec| spec.key == key));
    planned_results.chain(tasks.values().filter(|task| !is_planned(task)).map(to_result)).collect()
}

fn task_result(task: &Task, fate: Option<&TaskFate>, times: &TaskTimes) -> TaskResult {
    let (outcome, reason) = match fate {
        Some(TaskFate::Completed) => (TaskOutcome::Completed, None),
        Some(TaskFate::Failed(reason)) => (TaskOutcome::Failed, Some(reason.clone())),
        Some(TaskFate::Unreachable(reason)) => (TaskOutcome::NotDone, Some(reason.clone())),
        Some(TaskFate::Running) => (TaskOutcome::NotDone, Some("it was not finished".to_owned())),
        Some(TaskFate::Waiting) => (TaskOutcome::NotDone, Some("it was not begun".to_owned())),
        // Another program may delete the files of completed tasks.
        None if task.status == TaskStatus::Completed => (TaskOutcome::Completed, None),
        None => (TaskOutcome::Deleted, Some("it was deleted".to_owned())),
    };
    TaskResult {
        key: run_file_key(task).map(str::to_owned),
        id: Some(task.id),
        subject: task.subject.clone(),
        owner: task.owner.as_ref().map(ToString::to_string),
        outcome,
        seconds: times.duration(task.id, now()).map(|ms| ms as f64 / 1000.0),
        reason,
        answer: task.answer().map(str::to_owned),
    }
}

/// Corrects the results of the tasks in `cut_off`: members were working on these tasks when the run
/// ended. The outcome of each such task becomes `NotDone` with the reason `reason`, unless the task
/// is completed or deleted. If `reason` is `None`, no result changes.
pub(crate) fn mark_cut_off_tasks(results: &mut [TaskResult], cut_off: &[TaskId], reason: Option<String>) {
    let Some(reason) = reason else { return };
    let is_open = |outcome| matches!(outcome, TaskOutcome::NotDone | TaskOutcome::Failed);
    for result in results {
        if is_open(result.outcome) && result.id.is_some_and(|id| cut_off.contains(&id)) {
            (result.outcome, result.reason) = (TaskOutcome::NotDone, Some(reason.clone()));
        }
    }
}

/// How many tasks are completed.
pub fn completed_count(results: &[TaskResult]) -> usize {
    results.iter().filter(|result| result.outcome == TaskOutcome::Completed).count()
}

/// Formats a duration in milliseconds: `0.4s`, `12s`, `3m05s`, `2h10m`.
pub fn short_duration(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..10 => format!("{}.{}s", seconds, ms % 1000 / 100),
        10..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        let texts = [430, 9_999, 12_000, 185_000, 7_800_000].map(short_duration);
        assert_eq!(texts, ["0.4s", "9.9s", "12s", "3m05s", "2h10m"]);
    }
}
