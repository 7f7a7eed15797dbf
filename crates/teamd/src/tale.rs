//! What the event log has told of tasks and inboxes: the state from which the next look tells what changed.
//!
//! After a start it is read from the log itself, so that what happened while no daemon looked is told too, and
//! nothing twice.

use protocol::event::{Event, EventKind};
use protocol::id::{RequestId, TaskId};
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, TaskStatus};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Pending,
    Started,
    Failed,
    Completed,
}

/// A task as it was last told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TaskTale {
    pub(crate) stage: Stage,
    pub(crate) subject: String,
    pub(crate) owner: Option<AgentName>,
    /// That its owner is gone was told.
    pub(crate) left: bool,
    /// The whole of it; none where it is known from the log alone.
    task: Option<Arc<Task>>,
}

/// All that the log told.
#[derive(Debug, Default)]
pub(crate) struct Tale {
    pub(crate) tasks: BTreeMap<TeamName, BTreeMap<TaskId, TaskTale>>,
    /// How many entries of each inbox were told.
    pub(crate) inboxes: BTreeMap<(TeamName, AgentName), usize>,
    /// The requests of members that were told.
    pub(crate) requests: BTreeMap<TeamName, RequestTale>,
}

/// What of members' requests was told.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestTale {
    /// That they were asked.
    pub(crate) opened: BTreeSet<RequestId>,
    /// That they have their answer, or wait for none.
    pub(crate) closed: BTreeSet<RequestId>,
}

impl RequestTale {
    /// Forgets those that are told to their end and that no file names any more: nobody will tell of them again.
    pub(crate) fn keep(&mut self, named: &BTreeSet<RequestId>) {
        let closed = &self.closed;
        self.opened.retain(|request| named.contains(request) || !closed.contains(request));
        self.closed.retain(|request| named.contains(request));
    }
}

impl Tale {
    /// Takes the lines of the log, oldest first; one that can't be read is left out.
    pub(crate) fn of<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Tale {
        let mut tale = Tale::default();
        lines.filter_map(|line| serde_json::from_slice(line).ok()).for_each(|event| tale.take(event));
        tale
    }

    fn take(&mut self, event: Event) {
        let Some(team) = event.team else { return };
        match (event.kind, event.member) {
            (EventKind::TeamDeleted | EventKind::TeamCreated, _) => {
                self.tasks.remove(&team);
                self.requests.remove(&team);
                self.inboxes.retain(|(of, _), _| *of != team);
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
            (what, _) => take_task(self.tasks.entry(team).or_default(), what),
        }
    }
}

fn take_task(tasks: &mut BTreeMap<TaskId, TaskTale>, what: EventKind) {
    let mut put = |task, stage, subject, owner, left| {
        tasks.insert(task, TaskTale { stage, subject, owner, left, task: None });
    };
    match what {
        EventKind::TaskCreated { task, subject } | EventKind::TaskReleased { task, subject } => {
            put(task, Stage::Pending, subject, None, false);
        }
        EventKind::TaskStarted { task, subject, owner } => put(task, Stage::Started, subject, owner, false),
        EventKind::TaskCompleted { task, subject, owner } => {
            put(task, Stage::Completed, subject, owner, false)
        }
        EventKind::TaskFailed { task, subject, owner, .. } => put(task, Stage::Failed, subject, owner, false),
        EventKind::TaskAbandoned { task, subject, owner } => {
            put(task, Stage::Started, subject, Some(owner), true)
        }
        EventKind::TaskUpdated { task, subject, owner } => {
            if let Some(tale) = tasks.get_mut(&task) {
                (tale.subject, tale.owner) = (subject, owner);
            }
        }
        EventKind::TaskDeleted { task } => drop(tasks.remove(&task)),
        _ => {}
    }
}

/// What a task came to since it was told, in the order in which it must have happened.
pub(crate) fn since(told: Option<&TaskTale>, task: &Arc<Task>) -> Vec<EventKind> {
    let (id, subject, owner) = (task.id, task.subject.clone(), task.owner.clone());
    let now = TaskTale::of(task);
    let created = || EventKind::TaskCreated { task: id, subject: subject.clone() };
    let started = || EventKind::TaskStarted { task: id, subject: subject.clone(), owner: owner.clone() };
    let mut what = Vec::new();
    let before = match told {
        Some(told) => told.stage,
        None => {
            what.push(created());
            Stage::Pending
        }
    };
    // A turn that began and ended between two looks.
    if before == Stage::Pending && owner.is_some() && matches!(now.stage, Stage::Failed | Stage::Completed) {
        what.push(started());
    }
    match now.stage {
        // What can't be read, or a status from tomorrow, is no news.
        _ if told.is_some() && matches!(task.status, TaskStatus::Other(_)) => {}
        stage if stage == before => {
            if told.is_some_and(|told| told.differs(&now)) {
                what.push(EventKind::TaskUpdated { task: id, subject, owner });
            }
        }
        Stage::Pending => what.push(EventKind::TaskReleased { task: id, subject }),
        Stage::Started => what.push(started()),
        Stage::Completed => what.push(EventKind::TaskCompleted { task: id, subject, owner }),
        Stage::Failed => {
            let why = task.failure().unwrap_or_default().to_owned();
            what.push(EventKind::TaskFailed { task: id, subject, owner, reason: why });
        }
    }
    what
}

impl TaskTale {
    /// As it is told after a look.
    pub(crate) fn of(task: &Arc<Task>) -> TaskTale {
        let stage = match task.status {
            TaskStatus::Completed => Stage::Completed,
            TaskStatus::InProgress if task.failure().is_some() => Stage::Failed,
            TaskStatus::InProgress => Stage::Started,
            _ => Stage::Pending,
        };
        TaskTale {
            stage,
            subject: task.subject.clone(),
            owner: task.owner.clone(),
            left: false,
            task: Some(Arc::clone(task)),
        }
    }

    /// It was told as it is: nothing of it has been read anew.
    pub(crate) fn is_of(&self, task: &Arc<Task>) -> bool {
        self.task.as_ref().is_some_and(|told| Arc::ptr_eq(told, task))
    }

    fn differs(&self, now: &TaskTale) -> bool {
        let rest = self.task.as_ref().zip(now.task.as_ref()).is_some_and(|(before, now)| before != now);
        rest || self.subject != now.subject || self.owner != now.owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(status: &str, more: &str) -> Arc<Task> {
        let text = &(format!(
            r#"{{"id":"3","subject":"count","description":"","status":"{status}","blocks":[],"blockedBy":[]{more}}}"#
        ));
        Arc::new(Task::parse(text).unwrap())
    }

    fn words(told: Option<&TaskTale>, task: &Arc<Task>) -> Vec<String> {
        let value =
            |what: EventKind| serde_json::to_value(what).unwrap()["event"].as_str().unwrap().to_owned();
        since(told, task).into_iter().map(value).collect()
    }

    #[test]
    fn of_requests_only_what_may_be_told_yet_is_remembered() {
        let ids = |all: &[&str]| all.iter().map(|id| RequestId::parse(id).unwrap()).collect::<BTreeSet<_>>();
        let mut tale =
            RequestTale { opened: ids(&["gone-1", "kept-2", "waits-3"]), closed: ids(&["gone-1", "kept-2"]) };
        tale.keep(&ids(&["kept-2"]));
        assert_eq!((tale.opened, tale.closed), (ids(&["kept-2", "waits-3"]), ids(&["kept-2"])));
    }

    #[test]
    fn what_came_between_two_looks_is_told_in_order() {
        let done = task("completed", r#","owner":"ann""#);
        assert_eq!(words(None, &done), ["task_created", "task_started", "task_completed"]);
        let pending = TaskTale::of(&task("pending", ""));
        assert_eq!(words(Some(&pending), &done), ["task_started", "task_completed"]);
        let failed = task("in_progress", r#","owner":"ann","metadata":{"failure":"exit 1"}"#);
        assert_eq!(words(Some(&pending), &failed), ["task_started", "task_failed"]);
        assert_eq!(words(Some(&TaskTale::of(&failed)), &task("pending", "")), ["task_released"]);
        assert_eq!(words(Some(&TaskTale::of(&done)), &done), [""; 0]);
        let renamed = task("completed", r#","owner":"bob""#);
        assert_eq!(words(Some(&TaskTale::of(&done)), &renamed), ["task_changed"]);
    }

    #[test]
    fn the_log_tells_the_next_daemon_where_it_stands() {
        let team = TeamName::parse("survey").unwrap();
        let mut lines = Vec::new();
        let done = task("completed", r#","owner":"ann""#);
        for what in since(None, &done) {
            lines.push(serde_json::to_vec(&Event::for_team(&team, what)).unwrap());
        }
        lines.push(b"cut sho".to_vec());
        let tale = Tale::of(lines.iter().map(Vec::as_slice));
        assert_eq!(words(tale.tasks[&team].get(&done.id), &done), [""; 0]);
        lines.push(serde_json::to_vec(&Event::for_team(&team, EventKind::TeamDeleted)).unwrap());
        assert!(Tale::of(lines.iter().map(Vec::as_slice)).tasks.is_empty());
    }

    #[test]
    fn a_task_that_can_not_be_read_is_not_released() {
        let started = TaskTale::of(&task("in_progress", r#","owner":"ann""#));
        assert_eq!(words(Some(&started), &task("unreadable", "")), [""; 0]);
    }
}
