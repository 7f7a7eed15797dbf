//! The tasks of a team at the last scan, and which of these tasks can start or are in progress. An
//! update handles only the tasks that have changed since the previous scan.

use protocol::control_socket::{NextTaskHint, NextTaskRequest};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus, find_task};
use protocol::team_and_member_names::MemberName;
use std::cmp::Ordering;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The tasks of one team.
#[derive(Debug, Default)]
pub(crate) struct TaskBoard {
    /// The tasks, sorted by number.
    tasks: Vec<Arc<Task>>,
    /// For each task, the tasks that it blocks. The blocking task may not exist.
    dependents: BTreeMap<TaskId, BTreeSet<TaskId>>,
    /// The tasks that can start, with the only members that may claim them.
    startable: BTreeMap<TaskId, Option<MemberName>>,
    in_progress: BTreeSet<TaskId>,
    /// The tasks for each of which one member is started that does no other.
    once_members: BTreeMap<TaskId, MemberName>,
    visible_count: usize,
}

/// A task at the previous scan, and at this scan.
struct TaskChange {
    before: Option<Arc<Task>>,
    now: Option<Arc<Task>>,
}

impl TaskBoard {
    /// Takes over the tasks that a scan found, sorted by number. Returns the tasks that were added,
    /// changed or removed since the previous scan, also sorted by number.
    pub(crate) fn update(&mut self, found: &[Arc<Task>]) -> Vec<TaskId> {
        let changes = diff(&self.tasks, found);
        self.replace_changed(&changes, found);
        let changed: Vec<TaskId> = changes.iter().filter_map(TaskChange::id).collect();
        changes.into_iter().for_each(|change| self.index(change));
        let dependents = changed.iter().filter_map(|id| self.dependents.get(id)).flatten();
        let affected: Vec<TaskId> = changed.iter().chain(dependents).copied().collect();
        affected.into_iter().for_each(|id| self.update_startable(id));
        changed
    }

    pub(crate) fn task(&self, id: TaskId) -> Option<&Arc<Task>> {
        self.tasks.binary_search_by_key(&id, |task| task.id).ok().map(|index| &self.tasks[index])
    }

    /// How many tasks there are, without tracking tasks (internal tasks, one for each member).
    pub(crate) fn visible_count(&self) -> usize {
        self.visible_count
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.tasks.iter().filter(|task| !task.is_internal()).map(|task| task.id)
    }

    pub(crate) fn is_startable(&self, id: TaskId) -> bool {
        self.startable.contains_key(&id)
    }

    /// The tasks that can start, for their owner or any member.
    pub(crate) fn startable(&self) -> impl Iterator<Item = &Task> {
        self.startable.keys().filter_map(|id| Some(&**self.task(*id)?))
    }

    /// The tasks in progress, including failed ones, without tracking tasks.
    pub(crate) fn in_progress(&self) -> impl Iterator<Item = &Task> {
        self.in_progress.iter().filter_map(|id| Some(&**self.task(*id)?))
    }

    /// The task that the member should claim next. The first choice is a task that the member has
    /// in progress, if the query includes such tasks. The second choice is a startable task that
    /// the member owns, and the third a startable task without an owner.
    pub(crate) fn next(&self, request: &NextTaskRequest) -> NextTaskHint {
        let resumed_task = request.include_in_progress.then(|| self.resumable(&request.owner)).flatten();
        let startable_of = |owner: Option<&MemberName>| {
            self.startable.iter().find(|(_, task_owner)| task_owner.as_ref() == owner).map(|(id, _)| *id)
        };
        let is_once = || self.once_members.values().any(|member| *member == request.owner);
        resumed_task
            .or_else(|| startable_of(Some(&request.owner)))
            .or_else(|| startable_of(None).filter(|_| !is_once()))
            .map_or(NextTaskHint::NoTask, NextTaskHint::Task)
    }

    fn resumable(&self, owner: &MemberName) -> Option<TaskId> {
        let mut own_tasks = self.in_progress().filter(|task| task.owner.as_ref() == Some(owner));
        own_tasks
            .find(|task| task.failure().is_none() && task.open_blockers(&self.tasks).is_empty())
            .map(|task| task.id)
    }

    /// Replaces the changed tasks in place, if no task was added or removed.
    fn replace_changed(&mut self, changes: &[TaskChange], found: &[Arc<Task>]) {
        if changes.iter().any(|change| change.before.is_none() || change.now.is_none()) {
            self.tasks = found.to_vec();
            return;
        }
        for task in changes.iter().filter_map(|change| change.now.as_ref()) {
            if let Ok(index) = self.tasks.binary_search_by_key(&task.id, |task| task.id) {
                self.tasks[index] = Arc::clone(task);
            }
        }
    }

    fn index(&mut self, TaskChange { before, now }: TaskChange) {
        if let Some(task) = before {
            self.visible_count -= usize::from(!task.is_internal());
            self.in_progress.remove(&task.id);
            self.once_members.remove(&task.id);
            for blocker in &task.blocked_by {
                self.unindex_blocker(*blocker, task.id);
            }
        }
        if let Some(task) = now {
            self.visible_count += usize::from(!task.is_internal());
            if task.status == TaskStatus::InProgress && !task.is_internal() {
                self.in_progress.insert(task.id);
            }
            self.once_members.extend(task.once_member().map(|member| (task.id, member)));
            for blocker in &task.blocked_by {
                self.dependents.entry(*blocker).or_default().insert(task.id);
            }
        }
    }

    fn unindex_blocker(&mut self, blocker: TaskId, task: TaskId) {
        if let Entry::Occupied(mut dependents) = self.dependents.entry(blocker) {
            dependents.get_mut().remove(&task);
            if dependents.get().is_empty() {
                dependents.remove();
            }
        }
    }

    fn update_startable(&mut self, id: TaskId) {
        match find_task(&self.tasks, id).filter(|task| task.is_startable(&self.tasks)) {
            Some(task) => drop(self.startable.insert(id, task.claimer())),
            None => drop(self.startable.remove(&id)),
        }
    }
}

impl TaskChange {
    fn id(&self) -> Option<TaskId> {
        self.now.as_ref().or(self.before.as_ref()).map(|task| task.id)
    }
}

/// Compares the tasks of two scans. The files thread does not read an unchanged task again, so both
/// scans have the same `Arc` for it.
fn diff(before: &[Arc<Task>], now: &[Arc<Task>]) -> Vec<TaskChange> {
    let (mut changes, mut old, mut new) = (Vec::new(), before.iter().peekable(), now.iter().peekable());
    loop {
        let ordering = match (old.peek(), new.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(now)) if Arc::ptr_eq(before, now) => {
                old.next();
                new.next();
                continue;
            }
            (Some(before), Some(now)) => before.id.cmp(&now.id),
        };
        let before = if ordering.is_le() { old.next().cloned() } else { None };
        let now = if ordering.is_ge() { new.next().cloned() } else { None };
        changes.push(TaskChange { before, now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::task::{next_task, resumable_task};
    use protocol::team_and_member_names::TeamName;

    fn task(id: u32, rng: &mut fastrand::Rng) -> Arc<Task> {
        let status = ["pending", "pending", "in_progress", "completed", "unreadable"];
        let status = rng.choice(status).unwrap();
        let blocker = rng.u32(1..20);
        let metadata = match rng.u8(..) {
            0..40 => r#","metadata":{"_internal":true}"#,
            40..80 => r#","metadata":{"failure":"exit 1"}"#,
            _ => "",
        };
        let owner = rng.choice(["", "ann", "bob"]).unwrap();
        let text = format!(
            r#"{{"id":"{id}","subject":"x","status":"{status}","owner":"{owner}","blockedBy":["{blocker}"]{metadata}}}"#
        );
        Arc::new(Task::parse(&text).unwrap())
    }

    #[test]
    fn incremental_update_equals_a_full_evaluation() {
        let mut rng = fastrand::Rng::with_seed(7);
        let (mut board, mut all) = (TaskBoard::default(), BTreeMap::new());
        for _ in 0..3_000 {
            let mut expected = BTreeSet::new();
            for _ in 0..rng.u32(0..4) {
                let id = rng.u32(1..20);
                let previous =
                    if rng.u8(..) < 60 { all.remove(&id) } else { all.insert(id, task(id, &mut rng)) };
                expected.extend((previous.is_some() || all.contains_key(&id)).then_some(id));
            }
            let tasks: Vec<Arc<Task>> = all.values().cloned().collect();
            let changed = board.update(&tasks);
            // A task that was added and removed between two scans has not changed.
            assert!(changed.iter().all(|id| expected.contains(&id.number())), "{changed:?} of {expected:?}");
            let matching_ids = |is_wanted: &dyn Fn(&&Arc<Task>) -> bool| {
                tasks.iter().filter(is_wanted).map(|task| task.id).collect()
            };
            let startable: Vec<TaskId> = matching_ids(&|task| task.is_startable(&tasks));
            let in_progress_ids: Vec<TaskId> =
                matching_ids(&|task| task.status == TaskStatus::InProgress && !task.is_internal());
            let visible_ids: Vec<TaskId> = matching_ids(&|task| !task.is_internal());
            assert_eq!(board.startable().map(|task| task.id).collect::<Vec<_>>(), startable);
            assert_eq!(board.in_progress().map(|task| task.id).collect::<Vec<_>>(), in_progress_ids);
            assert_eq!(
                (board.ids().collect::<Vec<_>>(), board.visible_count()),
                (visible_ids.clone(), visible_ids.len())
            );
            for resume in [true, false] {
                let (team, owner) = (TeamName::parse("t").unwrap(), MemberName::new_unchecked("ANN"));
                let request = NextTaskRequest { team, owner, include_in_progress: resume };
                let resumed =
                    resume.then(|| resumable_task(&tasks, &request.owner)).flatten().map(|task| task.id);
                let expected = resumed.or_else(|| next_task(&tasks, &request.owner));
                assert_eq!(board.next(&request), expected.map_or(NextTaskHint::NoTask, NextTaskHint::Task));
            }
            assert!(board.update(&tasks).is_empty());
            assert!(
                board.dependents.values().all(|waiting| !waiting.is_empty()),
                "no task has an empty list of dependents"
            );
        }
    }
}
