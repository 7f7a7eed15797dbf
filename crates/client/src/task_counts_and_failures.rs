//! Numbers of tasks by status, the abandoned tasks and the failed ones.

use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde::Serialize;
use std::borrow::Borrow;

/// Number of tasks by status, without internal tasks.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct TaskCounts {
    /// Tasks that no member works on yet.
    pub pending: usize,
    /// Without the failed ones.
    pub in_progress: usize,
    /// Completed tasks.
    pub completed: usize,
    /// Tasks whose work failed. Their status is `in_progress`, so that no member claims them again.
    pub failed: usize,
}

/// A task in progress whose owner is no longer a member.
#[derive(Debug, PartialEq, Serialize)]
pub struct AbandonedTask {
    /// Id of the task.
    pub id: TaskId,
    /// Subject of the task.
    pub subject: String,
    /// The owner, which is no longer a member.
    pub owner: MemberName,
}

/// A task whose work failed.
#[derive(Debug, PartialEq, Serialize)]
pub struct FailedTask {
    /// Id of the task.
    pub id: TaskId,
    /// Subject of the task.
    pub subject: String,
    /// The member that worked on the task.
    pub owner: Option<MemberName>,
    /// Why the work failed.
    pub failure: String,
}

pub(crate) fn count_tasks(tasks: &[Task]) -> TaskCounts {
    let mut counts = TaskCounts::default();
    for task in tasks.iter().filter(|task| !task.is_internal()) {
        match task.status {
            TaskStatus::Pending => counts.pending += 1,
            TaskStatus::InProgress if task.failure().is_some() => counts.failed += 1,
            TaskStatus::InProgress => counts.in_progress += 1,
            TaskStatus::Completed => counts.completed += 1,
            _ => {}
        }
    }
    counts
}

fn tasks_in_progress<T: Borrow<Task>>(tasks: &[T]) -> impl Iterator<Item = &Task> {
    tasks
        .iter()
        .map(Borrow::borrow)
        .filter(|task| !task.is_internal() && task.status == TaskStatus::InProgress)
}

/// The tasks in progress whose owner is not one of `workers`. Failed tasks are listed separately.
pub fn abandoned_tasks<T: Borrow<Task>>(tasks: &[T], workers: &[MemberName]) -> Vec<AbandonedTask> {
    let to_abandoned_task = |task: &Task| {
        let owner = task.owner.clone().filter(|owner| !workers.contains(owner))?;
        Some(AbandonedTask { id: task.id, subject: task.subject.clone(), owner })
    };
    tasks_in_progress(tasks).filter(|task| task.failure().is_none()).filter_map(to_abandoned_task).collect()
}

pub(crate) fn failed_tasks(tasks: &[Task]) -> Vec<FailedTask> {
    let to_failed_task = |task: &Task| {
        let failure = task.failure()?.to_owned();
        Some(FailedTask { id: task.id, subject: task.subject.clone(), owner: task.owner.clone(), failure })
    };
    tasks_in_progress(tasks).filter_map(to_failed_task).collect()
}
