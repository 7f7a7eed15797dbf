//! A batch of new tasks that are created together. Until the tasks have ids, dependencies between
//! them are indexes in the batch. Cycles are rejected before any task is created.

use super::new_task::BatchTask;
use crate::error::Error;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, find_cycle, find_task};
use std::collections::BTreeSet;
use std::sync::Arc;

/// New tasks without a dependency cycle among themselves.
pub(super) struct TaskBatch {
    tasks: Vec<BatchTask>,
    /// All indexes, each after the indexes of its blockers.
    order: Vec<usize>,
    /// For each task, the indexes of the tasks that it blocks.
    blocks: Vec<Vec<usize>>,
}

/// State of one task in the depth-first search.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SortState {
    Unvisited,
    /// The task is on the path that is being searched.
    OnPath,
    Done,
}

impl TaskBatch {
    /// Creates a batch of tasks in memory.
    ///
    /// # Errors
    /// `NoSuchBatchIndex` if a task names a blocker by an index that the batch does not have;
    /// `BatchCycle`.
    pub(super) fn new(mut planned: Vec<BatchTask>) -> Result<TaskBatch, Error> {
        let count = planned.len();
        let mut blocks = vec![Vec::new(); count];
        for (at, plan) in planned.iter_mut().enumerate() {
            plan.blocked_by_index = dedup(&plan.blocked_by_index);
            for after in plan.blocked_by_index.iter().copied() {
                if after >= count {
                    let subject = plan.task.subject.clone();
                    return Err(Error::NoSuchBatchIndex { subject, index: after, count });
                }
                blocks[after].push(at);
            }
        }
        let mut batch = TaskBatch { tasks: planned, order: Vec::with_capacity(count), blocks };
        batch.sort()?;
        Ok(batch)
    }

    /// Fills `order`, the order in which the tasks are created, by a depth-first search. The search
    /// uses an explicit stack and no recursion, since a chain of dependencies may be as long as the
    /// batch.
    fn sort(&mut self) -> Result<(), Error> {
        let mut states = vec![SortState::Unvisited; self.tasks.len()];
        for start in 0..self.tasks.len() {
            let mut path = vec![(start, 0)];
            while let Some((at, next)) = path.last_mut() {
                let at = *at;
                if states[at] == SortState::Done {
                    path.pop();
                    continue;
                }
                states[at] = SortState::OnPath;
                match self.tasks[at].blocked_by_index.get(*next).copied() {
                    Some(blocker) if states[blocker] == SortState::OnPath => {
                        return Err(self.cycle_error(&path, blocker));
                    }
                    Some(blocker) => {
                        *next += 1;
                        path.push((blocker, 0));
                    }
                    None => {
                        states[at] = SortState::Done;
                        self.order.push(at);
                    }
                }
            }
        }
        Ok(())
    }

    /// The error for the cycle that consists of the end of `path`, from `blocker` on.
    fn cycle_error(&self, path: &[(usize, usize)], blocker: usize) -> Error {
        let from = path.iter().position(|(at, _)| *at == blocker).unwrap_or_default();
        let mut path: Vec<String> = path[from..].iter().map(|(at, _)| self.subject(*at)).collect();
        path.push(self.subject(blocker));
        path.reverse();
        Error::BatchCycle { path }
    }

    fn subject(&self, at: usize) -> String {
        format!("{:?}", self.tasks[at].task.subject)
    }

    /// The indexes in the order in which the files are created.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The creator of each task.
    pub(super) fn creators(&self) -> impl Iterator<Item = &AgentName> {
        self.tasks.iter().map(|plan| &plan.task.created_by)
    }

    /// Whether a task of the batch depends on an existing task, or blocks one.
    pub(super) fn has_external_links(&self) -> bool {
        self.tasks.iter().any(|plan| !plan.task.blocks.is_empty() || !plan.task.blocked_by.is_empty())
    }

    /// The tasks of the batch, with ids from `first` on. Each task contains the dependencies that
    /// are stored in its own file.
    pub(super) fn tasks(&self, first: TaskId) -> Vec<Task> {
        let id = |at: &usize| offset_id(first, *at);
        let tasks = self.tasks.iter().zip(&self.blocks).enumerate().map(|(at, (plan, blocks))| Task {
            blocks: blocks.iter().map(id).collect(),
            blocked_by: plan.blocked_by_index.iter().map(id).chain(dedup(&plan.task.blocked_by)).collect(),
            ..plan.task.to_task(id(&at))
        });
        tasks.collect()
    }

    /// The dependencies between new and existing tasks, as pairs of blocker and blocked task.
    pub(super) fn external_links(&self, tasks: &[Task]) -> Vec<(TaskId, TaskId)> {
        let links = self.tasks.iter().zip(tasks).flat_map(|(plan, task)| {
            let before = plan.task.blocked_by.iter().map(|blocker| (*blocker, task.id));
            before.chain(plan.task.blocks.iter().map(|blocked| (task.id, *blocked)))
        });
        links.collect()
    }

    /// Checks the dependencies of the batch on existing tasks. `all` is the existing list.
    ///
    /// # Errors
    /// `NoSuchTask` for an id that does not exist; `BatchCycle` for a cycle through existing tasks.
    pub(super) fn check_links<'a>(
        &self,
        team: &TeamName,
        all: impl Iterator<Item = &'a Arc<Task>>,
    ) -> Result<(), Error> {
        let mut all: Vec<Arc<Task>> = all.cloned().collect();
        for id in self.tasks.iter().flat_map(|plan| plan.task.blocks.iter().chain(&plan.task.blocked_by)) {
            find_task(&all, *id).ok_or_else(|| Error::NoSuchTask { id: *id, team: team.clone() })?;
        }
        let last = all.last().map_or(0, |task| task.id.number());
        let Some(first) = TaskId::from_number(last + 1) else { return Ok(()) };
        let mut new = self.tasks(first);
        for (task, plan) in new.iter_mut().zip(&self.tasks) {
            task.blocks.extend(&plan.task.blocks);
        }
        all.extend(new.iter().cloned().map(Arc::new));
        // The batch itself has no cycle. So a cycle must lead from a new task to an existing task
        // and back.
        for (task, plan) in new.iter().zip(&self.tasks) {
            for blocked in &plan.task.blocks {
                if let Some(cycle) = find_cycle(&all, task.id, *blocked) {
                    return Err(self.external_cycle_error(first, &cycle));
                }
            }
        }
        Ok(())
    }

    fn external_cycle_error(&self, first: TaskId, path: &[TaskId]) -> Error {
        let name = |id: &TaskId| match id.number().checked_sub(first.number()) {
            Some(at) => self.subject(at as usize),
            None => id.to_string(),
        };
        Error::BatchCycle { path: path.iter().map(name).collect() }
    }
}

/// The id that is `by` places after `first`. The caller has checked that enough ids are free.
fn offset_id(first: TaskId, by: usize) -> TaskId {
    let number = u32::try_from(by).ok().and_then(|by| first.number().checked_add(by));
    number.and_then(TaskId::from_number).unwrap_or(first)
}

/// Removes duplicates and keeps the order.
fn dedup<T: Copy + Ord>(all: &[T]) -> Vec<T> {
    let mut unique = BTreeSet::new();
    all.iter().copied().filter(|item| unique.insert(*item)).collect()
}
