//! What a team's tasks say of one member: what it could start, what that waits for, and whose the rest is.

use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, find_task};
use std::collections::BTreeSet;

/// A task, and what it waits for in the end: those of its blockers, and of theirs, that wait for nothing themselves.
#[derive(Debug, Clone)]
pub(super) struct TaskWait {
    pub(super) task: TaskId,
    pub(super) blockers: Vec<Task>,
}

/// What it could do and can't start yet: its own tasks, where it has any, else those that are anybody's. None where
/// there is something that it can start, or works on.
pub(super) fn task_waits(tasks: &[Task], name: &AgentName) -> Vec<TaskWait> {
    let open = |task: &&Task| !task.is_internal() && task.status == TaskStatus::Pending;
    let (mine, anybodys): (Vec<&Task>, Vec<&Task>) = tasks
        .iter()
        .filter(open)
        .filter(|task| task.owner.as_ref().is_none_or(|owner| owner == name))
        .partition(|task| task.owner.is_some());
    let wanted = if mine.is_empty() { anybodys } else { mine };
    if current_task(tasks, name).is_some() || wanted.iter().any(|task| task.open_blockers(tasks).is_empty()) {
        return Vec::new();
    }
    wanted.iter().map(|task| final_blockers(task, tasks)).collect()
}

/// Where others have written tasks that wait for each other in a circle there is no end: what stands next is told.
fn final_blockers(task: &Task, tasks: &[Task]) -> TaskWait {
    let next = task.open_blockers(tasks);
    let (mut seen, mut open) = (BTreeSet::new(), next.clone());
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(find_task(tasks, id).into_iter().flat_map(|blocker| blocker.open_blockers(tasks)));
        }
    }
    let all = || seen.iter().filter_map(|id| find_task(tasks, *id).cloned());
    let mut blockers: Vec<Task> = all().filter(|task| task.open_blockers(tasks).is_empty()).collect();
    if blockers.is_empty() {
        blockers = all().filter(|task| next.contains(&task.id)).collect();
    }
    TaskWait { task: task.id, blockers }
}

impl TaskWait {
    /// Something that it waits for is nobody's, so that it would wait for ever.
    pub(super) fn has_unowned_blocker(&self, lives: impl Fn(&AgentName) -> bool) -> bool {
        self.blockers.iter().any(|task| is_unowned(task, &lives))
    }
}

/// Nobody is at work on it, nor has it for his own.
pub(super) fn is_unowned(task: &Task, lives: impl Fn(&AgentName) -> bool) -> bool {
    task.owner.as_ref().is_none_or(|owner| !lives(owner))
}

/// What it has in progress and has not failed.
pub(super) fn current_task<'t>(tasks: &'t [Task], name: &AgentName) -> Option<&'t Task> {
    in_progress(tasks, name).find(|task| task.failure().is_none())
}

/// What it has in progress and has failed, the latest.
pub(super) fn failed_task<'t>(tasks: &'t [Task], name: &AgentName) -> Option<&'t Task> {
    in_progress(tasks, name).filter(|task| task.failure().is_some()).last()
}

fn in_progress<'t>(tasks: &'t [Task], name: &AgentName) -> impl Iterator<Item = &'t Task> {
    let hers = |task: &&Task| task.owner.as_ref() == Some(name) && !task.is_internal();
    tasks.iter().filter(hers).filter(|task| task.status == TaskStatus::InProgress)
}

/// What could be done now, and is others' and not begun; none where there is anything for it.
pub(super) fn tasks_of_others(tasks: &[Task], name: &AgentName) -> Vec<Task> {
    let open = |task: &&Task| !task.is_internal() && task.status == TaskStatus::Pending;
    let (others, rest): (Vec<&Task>, Vec<&Task>) =
        tasks.iter().filter(open).partition(|task| task.owner.as_ref().is_some_and(|owner| owner != name));
    if rest.is_empty() { others.into_iter().cloned().collect() } else { Vec::new() }
}
