//! The tasks that were completed or failed since a time, from the task list and the event log.

use super::team_events::{LoggedTaskEnd, TaskEvents, TeamEvents};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use runner::{TaskOutcome, TaskResult, run_file_key};
use std::collections::BTreeMap;

/// Returns the results of the tasks that have ended, ordered by owner and id. With `since`, returns
/// only tasks that have ended since then according to the event log. `tasks` is the team's task
/// list, `None` if the team was deleted. If the task list and the event log differ about a task,
/// the result is that of the task list.
pub(super) fn finished_tasks(
    events: &TeamEvents,
    tasks: Option<&[Task]>,
    since: Option<u64>,
    now: u64,
) -> Vec<TaskResult> {
    let mut results: BTreeMap<TaskId, TaskResult> = events
        .tasks
        .iter()
        .filter(|(_, task)| is_in_time(Some(task), since))
        .filter_map(|(id, task)| Some((*id, logged_result(*id, task)?)))
        .collect();
    for task in tasks.unwrap_or_default() {
        // The log may lag behind the file.
        results.remove(&task.id);
        if is_in_time(events.tasks.get(&task.id), since) {
            results.extend(file_result(task).map(|result| (task.id, result)));
        }
    }
    let seconds = |id: &TaskId| events.times.duration(*id, now).map(|ms| ms as f64 / 1000.0);
    let with_time = |(id, result)| TaskResult { seconds: seconds(&id), ..result };
    let mut results: Vec<TaskResult> = results.into_iter().map(with_time).collect();
    results.sort_by(|a, b| a.owner.cmp(&b.owner));
    results
}

fn is_in_time(task: Option<&TaskEvents>, since: Option<u64>) -> bool {
    let end = task.and_then(|task| task.end);
    since.is_none_or(|since| match end {
        Some(LoggedTaskEnd::CompletedAt(at) | LoggedTaskEnd::FailedAt(at)) => at >= since,
        None => false,
    })
}

/// The result of a task according to the log alone. `None` if the task has not ended.
fn logged_result(id: TaskId, task: &TaskEvents) -> Option<TaskResult> {
    let (outcome, reason) = match task.end? {
        LoggedTaskEnd::CompletedAt(_) => (TaskOutcome::Completed, None),
        LoggedTaskEnd::FailedAt(_) => {
            (TaskOutcome::Failed, task.last_failure.as_ref().map(|(_, reason)| reason.clone()))
        }
    };
    Some(TaskResult {
        key: None,
        id: Some(id),
        subject: task.subject.clone(),
        owner: task.owner.as_ref().map(ToString::to_string),
        outcome,
        seconds: None,
        reason,
        answer: None,
    })
}

/// The result of a task according to its file. `None` if the task has not ended.
fn file_result(task: &Task) -> Option<TaskResult> {
    let (outcome, reason) = match (&task.status, task.failure()) {
        _ if task.is_internal() => return None,
        (TaskStatus::Completed, _) => (TaskOutcome::Completed, None),
        (TaskStatus::InProgress, Some(failure)) => (TaskOutcome::Failed, Some(failure.to_owned())),
        _ => return None,
    };
    Some(TaskResult {
        key: run_file_key(task).map(str::to_owned),
        id: Some(task.id),
        subject: task.subject.clone(),
        owner: task.owner.as_ref().map(ToString::to_string),
        outcome,
        seconds: None,
        reason,
        answer: task.answer().map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event_log_line::Event;
    use protocol::timestamp::iso8601;

    fn events(since: Option<u64>) -> TeamEvents {
        let line = |ms: u64, event: &str, id: u32, more: &str| -> Event {
            let (time, team) = (iso8601(ms), r#""team":"t""#);
            let line = format!(
                r#"{{"time":"{time}",{team},"event":"{event}","task":"{id}","subject":"s{id}","owner":"ann"{more}}}"#
            );
            serde_json::from_str(&line).unwrap()
        };
        let events = [
            line(1_000, "task_started", 1, ""),
            line(3_000, "task_completed", 1, ""),
            line(5_000, "task_failed", 2, r#","reason":"exit 1""#),
        ];
        TeamEvents::new(&events, since)
    }

    fn summary(tasks: Option<&[Task]>, since: Option<u64>) -> Vec<String> {
        let results = finished_tasks(&events(since), tasks, since, 9_000);
        let text = |result: &TaskResult| {
            let seconds = result.seconds.map_or_else(String::new, |seconds| format!(" {seconds}"));
            format!("{} {}{seconds}", result.subject, result.outcome.text())
        };
        results.iter().map(text).collect()
    }

    #[test]
    fn log_alone_has_the_results_of_a_deleted_team() {
        assert_eq!(summary(None, None), ["s1 completed 2", "s2 failed"]);
        assert_eq!(summary(None, Some(4_000)), ["s2 failed"]);
    }

    #[test]
    fn files_decide_over_the_log() {
        let task = |id: u32, status: &str, more: &str| {
            Task::parse(&format!(r#"{{"id":"{id}","subject":"f{id}","status":"{status}"{more}}}"#)).unwrap()
        };
        let tasks = [
            task(2, "pending", ""),
            task(3, "completed", ""),
            task(4, "completed", r#","metadata":{"_internal":true}"#),
            task(5, "in_progress", r#","metadata":{"failure":"exit 2"}"#),
        ];
        assert_eq!(summary(Some(&tasks), None), ["f3 completed", "f5 failed", "s1 completed 2"]);
        assert_eq!(summary(Some(&tasks), Some(2_000)), ["s1 completed 2"], "the log has no end of 3 and 5");
    }
}
