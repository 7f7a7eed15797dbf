//! What a team's tasks say of one member: what it could start, what that waits for, and whose the rest is.

use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, find};

/// A task, and what it waits for.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub(super) task: TaskId,
    pub(super) blockers: Vec<Task>,
}

/// What it could do and can't start yet: its own tasks, where it has any, else those that are anybody's. None where
/// there is something that it can start, or works on.
pub(super) fn waits(tasks: &[Task], name: &AgentName) -> Vec<Wait> {
    let open = |task: &&Task| !task.is_internal() && task.status == TaskStatus::Pending;
    let (mine, anybodys): (Vec<&Task>, Vec<&Task>) = tasks
        .iter()
        .filter(open)
        .filter(|task| task.owner.as_ref().is_none_or(|owner| owner == name))
        .partition(|task| task.owner.is_some());
    let wanted = if mine.is_empty() { anybodys } else { mine };
    if works_on(tasks, name).is_some() || wanted.iter().any(|task| task.open_blockers(tasks).is_empty()) {
        return Vec::new();
    }
    wanted.iter().map(|task| wait(task, tasks)).collect()
}

fn wait(task: &Task, tasks: &[Task]) -> Wait {
    let blockers = task.open_blockers(tasks).into_iter().filter_map(|id| find(tasks, id).cloned());
    Wait { task: task.id, blockers: blockers.collect() }
}

impl Wait {
    /// Nobody is at work on any of what it waits for, nor has it for his own.
    pub(super) fn is_unowned(&self, lives: impl Fn(&AgentName) -> bool) -> bool {
        self.blockers.iter().all(|task| task.owner.as_ref().is_none_or(|owner| !lives(owner)))
    }
}

/// What it has in progress and has not failed.
pub(super) fn works_on<'t>(tasks: &'t [Task], name: &AgentName) -> Option<&'t Task> {
    in_progress(tasks, name).find(|task| task.failure().is_none())
}

/// What it has in progress and has failed, the latest.
pub(super) fn failed<'t>(tasks: &'t [Task], name: &AgentName) -> Option<&'t Task> {
    in_progress(tasks, name).filter(|task| task.failure().is_some()).last()
}

fn in_progress<'t>(tasks: &'t [Task], name: &AgentName) -> impl Iterator<Item = &'t Task> {
    let hers = |task: &&Task| task.owner.as_ref() == Some(name) && !task.is_internal();
    tasks.iter().filter(hers).filter(|task| task.status == TaskStatus::InProgress)
}

/// What could be done now, and is others' and not begun; none where there is anything for it.
pub(super) fn of_others(tasks: &[Task], name: &AgentName) -> Vec<Task> {
    let open = |task: &&Task| !task.is_internal() && task.status == TaskStatus::Pending;
    let (others, rest): (Vec<&Task>, Vec<&Task>) =
        tasks.iter().filter(open).partition(|task| task.owner.as_ref().is_some_and(|owner| owner != name));
    if rest.is_empty() { others.into_iter().cloned().collect() } else { Vec::new() }
}
