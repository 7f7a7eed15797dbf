//! What the event log has already about tasks, messages and requests (the event log cursor), and
//! which events of a task are new. A scan compares the files with the cursor, and logs the
//! differences.
//!
//! At its start, the daemon fills the cursor from the event log. So changes that were made while no
//! daemon ran are logged as well, and no change is logged twice.

use crate::core::state::host_links::EventNumbers;
use protocol::event_log_line::{Event, EventKind};
use protocol::length_limits_of_texts::shorten;
use protocol::member_task_and_request_ids::{RequestId, TaskId};
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The reason of a failure that a run had already taken out of the task's file at the next scan.
const UNREAD_REASON: &str = "not known: the run repeated the task before teamd read the reason";
/// The most releases that are logged for one scan. Any program can write any count into a file.
const MAX_UNSEEN_RETRIES: u64 = 16;

/// The state of a task in the event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoggedTaskState {
    Pending,
    Started,
    Failed,
    Completed,
}

/// A task as the event log has it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoggedTask {
    pub(crate) state: LoggedTaskState,
    /// The subject, shortened as events have it.
    pub(crate) subject: String,
    pub(crate) owner: Option<MemberName>,
    /// Whether the task is logged as abandoned.
    pub(crate) is_abandoned: bool,
    /// The task at the last scan. `None` if only the event log has had the task so far.
    task: Option<Arc<Task>>,
}

/// The content of the event log, as far as scans need it.
#[derive(Debug, Default)]
pub(crate) struct EventLogCursor {
    pub(crate) tasks: BTreeMap<TeamName, BTreeMap<TaskId, LoggedTask>>,
    /// How many messages of each inbox are logged.
    pub(crate) inboxes: BTreeMap<(TeamName, MemberName), usize>,
    /// The logged requests of each team.
    pub(crate) requests: BTreeMap<TeamName, LoggedRequests>,
    /// The numbers of events that annexes send to homes.
    pub(crate) event_numbers: EventNumbers,
}

/// The logged requests of one team.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoggedRequests {
    /// Requests that are logged as opened.
    pub(crate) opened: BTreeSet<RequestId>,
    /// Requests that are logged as answered or withdrawn.
    pub(crate) closed: BTreeSet<RequestId>,
}

impl LoggedRequests {
    /// Forgets each closed request whose id is not in `ids_in_files`, the ids of all requests in
    /// the files.
    pub(crate) fn forget_closed(&mut self, ids_in_files: &BTreeSet<RequestId>) {
        let closed = &self.closed;
        self.opened.retain(|request| ids_in_files.contains(request) || !closed.contains(request));
        self.closed.retain(|request| ids_in_files.contains(request));
    }
}

impl EventLogCursor {
    /// Reads the lines of the log, the oldest first. Invalid lines are skipped.
    pub(crate) fn from_lines(lines: impl Iterator<Item = impl AsRef<[u8]>>) -> EventLogCursor {
        let mut cursor = EventLogCursor::default();
        lines
            .filter_map(|line| serde_json::from_slice(line.as_ref()).ok())
            .for_each(|event| cursor.apply(event));
        cursor
    }

    fn apply(&mut self, event: Event) {
        self.event_numbers.note_logged(&event);
        let Some(team) = event.team.filter(|_| event.on_host.is_none()) else { return };
        match (event.kind, event.member) {
            (EventKind::TeamDeleted | EventKind::TeamCreated, _) => {
                self.tasks.remove(&team);
                self.requests.remove(&team);
                self.inboxes.retain(|(inbox_team, _), _| *inbox_team != team);
            }
            (EventKind::MessageStored { index, .. }, Some(agent)) => {
                self.inboxes.insert((team, agent), index + 1);
            }
            (EventKind::RequestOpened { request_id: request, .. }, _) => {
                self.requests.entry(team).or_default().opened.extend(RequestId::parse(&request).ok());
            }
            (
                EventKind::RequestAnswered { request_id: request, .. }
                | EventKind::RequestWithdrawn { request_id: request },
                _,
            ) => {
                self.requests.entry(team).or_default().closed.extend(RequestId::parse(&request).ok());
            }
            (kind, _) => apply_task_event(self.tasks.entry(team).or_default(), kind),
        }
    }
}

fn apply_task_event(tasks: &mut BTreeMap<TaskId, LoggedTask>, kind: EventKind) {
    let mut insert = |task, state, subject, owner, is_abandoned| {
        tasks.insert(task, LoggedTask { state, subject, owner, is_abandoned, task: None });
    };
    match kind {
        EventKind::TaskCreated { task, subject } | EventKind::TaskReleased { task, subject } => {
            insert(task, LoggedTaskState::Pending, subject, None, false);
        }
        EventKind::TaskStarted { task, subject, owner } => {
            insert(task, LoggedTaskState::Started, subject, owner, false);
        }
        EventKind::TaskCompleted { task, subject, owner } => {
            insert(task, LoggedTaskState::Completed, subject, owner, false);
        }
        EventKind::TaskFailed { task, subject, owner, .. } => {
            insert(task, LoggedTaskState::Failed, subject, owner, false);
        }
        EventKind::TaskAbandoned { task, subject, owner } => {
            insert(task, LoggedTaskState::Started, subject, Some(owner), true);
        }
        EventKind::TaskUpdated { task, subject, owner } => {
            if let Some(logged) = tasks.get_mut(&task) {
                (logged.subject, logged.owner) = (subject, owner);
            }
        }
        EventKind::TaskDeleted { task } => drop(tasks.remove(&task)),
        _ => {}
    }
}

/// The events that must be logged for a task, in the order in which they must have happened.
/// `logged` is the state of the task in the event log, or `None` for a new task.
pub(crate) fn new_events(logged: Option<&LoggedTask>, task: &Arc<Task>) -> Vec<EventKind> {
    let scanned = LoggedTask::from_task(task);
    let mut events = Vec::new();
    let mut state = logged.map_or_else(
        || {
            events.push(EventKind::TaskCreated { task: task.id, subject: scanned.subject.clone() });
            LoggedTaskState::Pending
        },
        |logged| logged.state,
    );
    for retry in 0..logged.map_or(0, |logged| logged.retries_until(task)) {
        // The release may have changed the owner.
        let last_owner = logged.filter(|_| retry == 0).and_then(|logged| logged.owner.clone());
        let failed = LoggedTask { owner: last_owner.or_else(|| task.run_owner()), ..scanned.clone() };
        events.extend(failed.failure_and_release(task.id, state));
        state = LoggedTaskState::Pending;
    }
    match scanned.state {
        // An unreadable task or an unknown status causes no event.
        _ if logged.is_some() && matches!(task.status, TaskStatus::Other(_)) => {}
        same if same == state => {
            if events.is_empty() && logged.is_some_and(|logged| logged.differs_from(&scanned)) {
                events.push(scanned.updated_event(task.id));
            }
        }
        LoggedTaskState::Pending => events.push(scanned.released_event(task.id)),
        LoggedTaskState::Started => events.push(scanned.started_event(task.id)),
        LoggedTaskState::Completed => {
            events.extend(scanned.start_before_end(task.id, state));
            events.push(scanned.completed_event(task.id));
        }
        LoggedTaskState::Failed => {
            events.extend(scanned.start_before_end(task.id, state));
            events.push(scanned.failed_event(task.id, task.failure().unwrap_or_default()));
        }
    }
    events
}

/// The events of a task, with the subject and the owner that the last scan found.
impl LoggedTask {
    fn started_event(&self, task: TaskId) -> EventKind {
        EventKind::TaskStarted { task, subject: self.subject.clone(), owner: self.owner.clone() }
    }

    fn completed_event(&self, task: TaskId) -> EventKind {
        EventKind::TaskCompleted { task, subject: self.subject.clone(), owner: self.owner.clone() }
    }

    fn failed_event(&self, task: TaskId, reason: &str) -> EventKind {
        let (subject, owner) = (self.subject.clone(), self.owner.clone());
        EventKind::TaskFailed { task, subject, owner, reason: reason.to_owned() }
    }

    fn released_event(&self, task: TaskId) -> EventKind {
        EventKind::TaskReleased { task, subject: self.subject.clone() }
    }

    fn updated_event(&self, task: TaskId) -> EventKind {
        EventKind::TaskUpdated { task, subject: self.subject.clone(), owner: self.owner.clone() }
    }

    /// The start of a task that was started and ended between two scans.
    fn start_before_end(&self, task: TaskId, before: LoggedTaskState) -> Option<EventKind> {
        (before == LoggedTaskState::Pending && self.owner.is_some()).then(|| self.started_event(task))
    }

    /// The events for a task that has failed and was made pending again between two scans. `before`
    /// is the state of the task at the earlier scan.
    fn failure_and_release(&self, task: TaskId, before: LoggedTaskState) -> Vec<EventKind> {
        let mut events = Vec::new();
        if before == LoggedTaskState::Pending {
            events.push(self.started_event(task));
        }
        if before != LoggedTaskState::Failed {
            events.push(self.failed_event(task, UNREAD_REASON));
        }
        events.push(self.released_event(task));
        events
    }

    /// How often a run (`teamctl run`) has made the failed task pending again since the last scan.
    /// 0 if this daemon has not scanned the task before, because the event log does not have this
    /// number.
    fn retries_until(&self, task: &Task) -> u64 {
        let retries = self.task.as_ref().map(|before| task.retries().saturating_sub(before.retries()));
        retries.unwrap_or(0).min(MAX_UNSEEN_RETRIES)
    }
}

impl LoggedTask {
    /// A task as a scan found it.
    pub(crate) fn from_task(task: &Arc<Task>) -> LoggedTask {
        let state = match task.status {
            TaskStatus::Completed => LoggedTaskState::Completed,
            TaskStatus::InProgress if task.failure().is_some() => LoggedTaskState::Failed,
            TaskStatus::InProgress => LoggedTaskState::Started,
            _ => LoggedTaskState::Pending,
        };
        LoggedTask {
            state,
            subject: shorten(task.subject.clone()),
            owner: task.owner.clone(),
            is_abandoned: false,
            task: Some(Arc::clone(task)),
        }
    }

    /// Whether the task was not read again since it was logged.
    pub(crate) fn is_same_read(&self, task: &Arc<Task>) -> bool {
        self.task.as_ref().is_some_and(|logged| Arc::ptr_eq(logged, task))
    }

    fn differs_from(&self, other: &LoggedTask) -> bool {
        let has_other_content =
            self.task.as_ref().zip(other.task.as_ref()).is_some_and(|(before, other)| before != other);
        has_other_content || self.subject != other.subject || self.owner != other.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: &str, more_fields: &str) -> Arc<Task> {
        let text = &(format!(
            r#"{{"id":"3","subject":"count","description":"","status":"{status}","blocks":[],"blockedBy":[]{more_fields}}}"#
        ));
        Arc::new(Task::parse(text).unwrap())
    }

    fn event_names(logged: Option<&LoggedTask>, task: &Arc<Task>) -> Vec<String> {
        let name =
            |kind: EventKind| serde_json::to_value(kind).unwrap()["event"].as_str().unwrap().to_owned();
        new_events(logged, task).into_iter().map(name).collect()
    }

    #[test]
    fn closed_requests_that_are_in_no_file_are_forgotten() {
        let ids = |ids: &[&str]| ids.iter().map(|id| RequestId::parse(id).unwrap()).collect::<BTreeSet<_>>();
        let mut logged = LoggedRequests {
            opened: ids(&["gone-1", "kept-2", "waits-3"]),
            closed: ids(&["gone-1", "kept-2"]),
        };
        logged.forget_closed(&ids(&["kept-2"]));
        assert_eq!((logged.opened, logged.closed), (ids(&["kept-2", "waits-3"]), ids(&["kept-2"])));
    }

    #[test]
    fn changes_between_two_scans_are_logged_in_order() {
        let done = task("completed", r#","owner":"ann""#);
        assert_eq!(event_names(None, &done), ["task_created", "task_started", "task_completed"]);
        let pending = LoggedTask::from_task(&task("pending", ""));
        assert_eq!(event_names(Some(&pending), &done), ["task_started", "task_completed"]);
        let failed = task("in_progress", r#","owner":"ann","metadata":{"failure":"exit 1"}"#);
        assert_eq!(event_names(Some(&pending), &failed), ["task_started", "task_failed"]);
        assert_eq!(
            event_names(Some(&LoggedTask::from_task(&failed)), &task("pending", "")),
            ["task_released"]
        );
        assert_eq!(event_names(Some(&LoggedTask::from_task(&done)), &done), [""; 0]);
        let repeated = r#","owner":"ann","metadata":{"retries":1}"#;
        for (before, after, between) in [
            (&pending, "pending", &["task_started", "task_failed", "task_released"][..]),
            (&pending, "in_progress", &["task_started", "task_failed", "task_released", "task_started"]),
            (&LoggedTask::from_task(&failed), "pending", &["task_released"]),
            (&LoggedTask::from_task(&failed), "in_progress", &["task_released", "task_started"]),
        ] {
            assert_eq!(event_names(Some(before), &task(after, repeated)), between);
        }
        let failed_again =
            task("in_progress", r#","owner":"ann","metadata":{"failure":"exit 1","retries":1}"#);
        assert_eq!(
            event_names(Some(&LoggedTask::from_task(&failed)), &failed_again),
            ["task_released", "task_started", "task_failed"]
        );
        let of_ann = LoggedTask::from_task(&task("in_progress", r#","owner":"ann""#));
        let for_bob = task("in_progress", r#","owner":"bob","metadata":{"retries":1}"#);
        let owners = new_events(Some(&of_ann), &for_bob).into_iter().filter_map(|event| match event {
            EventKind::TaskFailed { owner, .. } | EventKind::TaskStarted { owner, .. } => owner,
            _ => None,
        });
        assert_eq!(owners.map(|owner| owner.to_string()).collect::<Vec<_>>(), ["ann", "bob"]);
        let countless = task("pending", r#","metadata":{"retries":18446744073709551615}"#);
        assert!(event_names(Some(&pending), &countless).len() < 50);
        let renamed = task("completed", r#","owner":"bob""#);
        assert_eq!(event_names(Some(&LoggedTask::from_task(&done)), &renamed), ["task_updated"]);
    }

    #[test]
    fn next_daemon_restores_its_cursor_from_the_log() {
        let team = TeamName::parse("survey").unwrap();
        let mut lines = Vec::new();
        let done = task("completed", r#","owner":"ann""#);
        for kind in new_events(None, &done) {
            lines.push(serde_json::to_vec(&Event::for_team(&team, kind)).unwrap());
        }
        lines.push(b"cut sho".to_vec());
        let logged = EventLogCursor::from_lines(lines.iter().map(Vec::as_slice));
        assert_eq!(event_names(logged.tasks[&team].get(&done.id), &done), [""; 0]);
        lines.push(serde_json::to_vec(&Event::for_team(&team, EventKind::TeamDeleted)).unwrap());
        assert!(EventLogCursor::from_lines(lines.iter().map(Vec::as_slice)).tasks.is_empty());
    }

    #[test]
    fn unreadable_task_is_not_logged_as_released() {
        let started = LoggedTask::from_task(&task("in_progress", r#","owner":"ann""#));
        assert_eq!(event_names(Some(&started), &task("unreadable", "")), [""; 0]);
    }
}
