//! What a run came to: one row for each task, for people and as JSON, and the exit code.

use crate::run_file::RunFile;
use crate::task_fate::{RunDecision, TaskFate, run_file_key};
use crate::task_times::TaskTimes;
use protocol::id::TaskId;
use protocol::task::{Task, TaskStatus};
use serde::Serialize;
use std::collections::BTreeMap;
use store::now;

/// What became of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    Completed,
    Failed,
    NotDone,
    Deleted,
}

impl TaskOutcome {
    /// In words, for people.
    pub fn text(self) -> &'static str {
        match self {
            TaskOutcome::Completed => "completed",
            TaskOutcome::Failed => "failed",
            TaskOutcome::NotDone => "not done",
            TaskOutcome::Deleted => "deleted",
        }
    }
}

/// One task at the end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskResult {
    /// What the file calls it; none for one that an agent added.
    pub key: Option<String>,
    /// None for one that was never made.
    pub id: Option<TaskId>,
    pub subject: String,
    pub owner: Option<String>,
    /// What became of it.
    pub outcome: TaskOutcome,
    /// How long it was worked on; none where nobody did.
    pub seconds: Option<f64>,
    /// Why it is not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// All rows: the file's tasks in its order, then those that were added.
pub(crate) fn task_results(
    file: &RunFile,
    known: &BTreeMap<TaskId, Task>,
    decision: &RunDecision,
    log: &TaskTimes,
) -> Vec<TaskResult> {
    let of = |task: &Task| task_result(task, decision.fates.get(&task.id), log);
    let by_key: BTreeMap<&str, &Task> =
        known.values().filter_map(|task| Some((run_file_key(task)?, task))).collect();
    let planned = file.tasks.iter().map(|plan| match by_key.get(plan.key.as_str()) {
        Some(task) => of(task),
        None => TaskResult {
            key: Some(plan.key.clone()),
            id: None,
            subject: plan.subject.clone(),
            owner: plan.owner.as_ref().map(ToString::to_string),
            outcome: TaskOutcome::NotDone,
            seconds: None,
            reason: Some("it was never made".to_owned()),
        },
    });
    let is_planned =
        |task: &&Task| run_file_key(task).is_some_and(|key| file.tasks.iter().any(|plan| plan.key == key));
    planned.chain(known.values().filter(|task| !is_planned(task)).map(of)).collect()
}

fn task_result(task: &Task, fate: Option<&TaskFate>, log: &TaskTimes) -> TaskResult {
    let (outcome, why) = match fate {
        Some(TaskFate::Completed) => (TaskOutcome::Completed, None),
        Some(TaskFate::Failed(why)) => (TaskOutcome::Failed, Some(why.clone())),
        Some(TaskFate::Unreachable(why)) => (TaskOutcome::NotDone, Some(why.clone())),
        Some(TaskFate::Running) => (TaskOutcome::NotDone, Some("it was not finished".to_owned())),
        Some(TaskFate::Waiting) => (TaskOutcome::NotDone, Some("it was not begun".to_owned())),
        // Newer programs tidy up files of what is completed.
        None if task.status == TaskStatus::Completed => (TaskOutcome::Completed, None),
        None => (TaskOutcome::Deleted, Some("somebody deleted it".to_owned())),
    };
    TaskResult {
        key: run_file_key(task).map(str::to_owned),
        id: Some(task.id),
        subject: task.subject.clone(),
        owner: task.owner.as_ref().map(ToString::to_string),
        outcome,
        seconds: log.duration(task.id, now()).map(|ms| ms as f64 / 1000.0),
        reason: why,
    }
}

/// How many are completed.
pub fn completed_count(rows: &[TaskResult]) -> usize {
    rows.iter().filter(|row| row.outcome == TaskOutcome::Completed).count()
}

/// A duration in ms, short: `0.4s`, `12s`, `3m05s`, `2h10m`.
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
    fn durations_are_short() {
        let shown = [430, 9_999, 12_000, 185_000, 7_800_000].map(short_duration);
        assert_eq!(shown, ["0.4s", "9.9s", "12s", "3m05s", "2h10m"]);
    }
}
