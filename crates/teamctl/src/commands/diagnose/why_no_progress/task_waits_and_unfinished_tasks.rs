//! Finds out from the task list what one member can work on, and what its tasks wait for.

use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus, WaitCycle, find_task};
use protocol::team_and_member_names::MemberName;
use std::collections::BTreeSet;

/// A task that cannot start yet.
#[derive(Debug, Clone)]
pub(super) struct TaskWait {
    pub(super) task: TaskId,
    /// The direct and indirect blockers that have no open blockers themselves. Empty if all
    /// blockers are in cycles of tasks that wait for each other.
    pub(super) blockers: Vec<Task>,
    /// All direct and indirect blockers of the task. The task itself is one of them if it is in a
    /// cycle.
    awaited: BTreeSet<TaskId>,
}

/// Returns the tasks for which the member waits: the pending tasks that it may claim, if all of
/// them are blocked. If some pending tasks may be claimed only by this member, the other tasks are
/// ignored. Empty if one of the tasks can start, or if the member already works on a task.
pub(super) fn task_waits(tasks: &[Task], name: &MemberName) -> Vec<TaskWait> {
    let (own_tasks, unowned_tasks): (Vec<&Task>, Vec<&Task>) = pending_tasks(tasks)
        .filter(|task| task.claimer().is_none_or(|claimer| claimer == *name))
        .partition(|task| task.claimer().is_some());
    let candidates = if own_tasks.is_empty() { unowned_tasks } else { own_tasks };
    let can_start = candidates.iter().any(|task| task.open_blockers(tasks).is_empty());
    if can_start || current_task(tasks, name).is_some() {
        return Vec::new();
    }
    candidates.iter().map(|task| final_blockers(task, tasks)).collect()
}

fn final_blockers(task: &Task, tasks: &[Task]) -> TaskWait {
    let (mut awaited, mut queue) = (BTreeSet::new(), task.open_blockers(tasks));
    while let Some(id) = queue.pop() {
        if awaited.insert(id) {
            queue.extend(find_task(tasks, id).into_iter().flat_map(|blocker| blocker.open_blockers(tasks)));
        }
    }
    let awaited_tasks = awaited.iter().filter_map(|id| find_task(tasks, *id).cloned());
    let blockers = awaited_tasks.filter(|task| task.open_blockers(tasks).is_empty()).collect();
    TaskWait { task: task.id, blockers, awaited }
}

impl TaskWait {
    /// Whether the task has a blocker on which no member works: the blocker has no owner, or its
    /// owner is not a member any more.
    pub(super) fn has_unowned_blocker(&self, members: &[MemberName]) -> bool {
        self.blockers.iter().any(|task| is_unowned(task, members))
    }

    /// Whether the task is in the cycle, or waits for a task in it.
    pub(super) fn waits_for(&self, cycle: &WaitCycle) -> bool {
        cycle.tasks().iter().any(|task| self.awaited.contains(task))
    }
}

/// Whether the task has no owner, or an owner that is not a member any more.
pub(super) fn is_unowned(task: &Task, members: &[MemberName]) -> bool {
    task.owner.as_ref().is_none_or(|owner| !members.contains(owner))
}

/// A task that the member has in progress and that has not failed.
fn current_task<'t>(tasks: &'t [Task], name: &MemberName) -> Option<&'t Task> {
    tasks_in_progress(tasks, name).find(|task| task.failure().is_none())
}

/// The last task that the member has in progress and that has failed.
pub(super) fn failed_task<'t>(tasks: &'t [Task], name: &MemberName) -> Option<&'t Task> {
    tasks_in_progress(tasks, name).filter(|task| task.failure().is_some()).last()
}

/// The task that the member has in progress. A task that has not failed is preferred.
pub(super) fn unfinished_task<'t>(tasks: &'t [Task], name: &MemberName) -> Option<&'t Task> {
    current_task(tasks, name).or_else(|| failed_task(tasks, name))
}

fn tasks_in_progress<'t>(tasks: &'t [Task], name: &MemberName) -> impl Iterator<Item = &'t Task> {
    let is_own = |task: &&Task| task.owner.as_ref() == Some(name) && !task.is_internal();
    tasks.iter().filter(is_own).filter(|task| task.status == TaskStatus::InProgress)
}

fn pending_tasks(tasks: &[Task]) -> impl Iterator<Item = &Task> {
    tasks.iter().filter(|task| !task.is_internal() && task.status == TaskStatus::Pending)
}

/// The pending tasks of other members that can start now. `why` names them as tasks that the member
/// could take over. Empty if there is a pending task, blocked or not, that the member owns or that
/// has no owner.
pub(super) fn tasks_of_others<'t>(tasks: &'t [Task], name: &MemberName) -> Vec<&'t Task> {
    let (tasks_of_others, takeable_tasks): (Vec<&'t Task>, Vec<&Task>) =
        pending_tasks(tasks).partition(|task| task.owner.as_ref().is_some_and(|owner| owner != name));
    // A blocked task could not start with another owner either.
    let can_start = tasks_of_others.into_iter().filter(|task| task.open_blockers(tasks).is_empty());
    if takeable_tasks.is_empty() { can_start.collect() } else { Vec::new() }
}
