//! How long agents worked on the tasks of one team, from the team's events and from its task list.

use protocol::event_log_line::{Event, EventKind};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use protocol::timestamp::parse_iso8601;
use std::collections::HashMap;

/// When agents worked on the tasks of one team.
#[derive(Debug, Default)]
pub struct WorkTimes(HashMap<TaskId, WorkSpan>);

/// When an agent worked on a task, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct WorkSpan {
    started_at: Option<u64>,
    ended_at: Option<u64>,
}

impl WorkTimes {
    /// Updates the times from an event of the team.
    pub fn record(&mut self, event: &Event) {
        let Some(time) = parse_iso8601(&event.time) else { return };
        match &event.kind {
            // A new team of the same name uses the task ids again, so the times of the earlier team
            // are removed.
            EventKind::TeamCreated => self.0.clear(),
            EventKind::TaskStarted { task, .. } => {
                let ended_at =
                    self.0.get(task).and_then(|span| span.ended_at).filter(|ended_at| *ended_at >= time);
                self.0.insert(*task, WorkSpan { started_at: Some(time), ended_at });
            }
            EventKind::TaskCompleted { task, .. } | EventKind::TaskFailed { task, .. } => {
                self.0.entry(*task).or_default().ended_at = Some(time);
            }
            _ => {}
        }
    }

    /// Updates the times from the task list. `now` is in milliseconds since the epoch.
    pub(crate) fn update_from_tasks(&mut self, tasks: &[Task], now: u64) {
        for task in tasks.iter().filter(|task| !task.is_internal()) {
            let span = self.0.entry(task.id).or_default();
            match task.status {
                TaskStatus::InProgress if task.failure().is_none() => {
                    span.started_at.get_or_insert(now);
                    span.ended_at = None;
                }
                TaskStatus::Pending => *span = WorkSpan::default(),
                _ if span.started_at.is_some() => drop(span.ended_at.get_or_insert(now)),
                _ => {}
            }
        }
    }

    /// How long an agent has worked on the task until `now`, in milliseconds. `None` if no agent
    /// has started the task.
    pub fn duration(&self, id: TaskId, now: u64) -> Option<u64> {
        let span = self.0.get(&id)?;
        span.started_at.map(|started_at| span.ended_at.unwrap_or(now).saturating_sub(started_at))
    }
}
