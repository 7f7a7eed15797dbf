//! A batch of new tasks that are created together. Until the tasks have ids, dependencies between
//! them are indexes in the batch. Cycles are rejected before any task is created.

use super::new_task::NewTask;
use crate::error::Error;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, find_cycle, find_task};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One task of a batch.
#[derive(Debug, Clone)]
pub struct BatchTask {
    /// The task. Its dependencies are on existing tasks.
    pub task: NewTask,
    /// Tasks of the same batch that block this task, as indexes counted from 0. A blocker may come
    /// later in the batch than this task.
    pub blocked_by_index: Vec<usize>,
}

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
    pub(super) fn new(mut batch_tasks: Vec<BatchTask>) -> Result<TaskBatch, Error> {
        let count = batch_tasks.len();
        let mut blocks = vec![Vec::new(); count];
        for (index, batch_task) in batch_tasks.iter_mut().enumerate() {
            batch_task.blocked_by_index = dedup(&batch_task.blocked_by_index);
            for blocker in batch_task.blocked_by_index.iter().copied() {
                if blocker >= count {
                    let subject = batch_task.task.subject.clone();
                    return Err(Error::NoSuchBatchIndex { subject, index: blocker, count });
                }
                blocks[blocker].push(index);
            }
        }
        let mut batch = TaskBatch { tasks: batch_tasks, order: Vec::with_capacity(count), blocks };
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
            while let Some((index, next_blocker)) = path.last_mut() {
                let index = *index;
                if states[index] == SortState::Done {
                    path.pop();
                    continue;
                }
                states[index] = SortState::OnPath;
                match self.tasks[index].blocked_by_index.get(*next_blocker).copied() {
                    Some(blocker) if states[blocker] == SortState::OnPath => {
                        return Err(self.cycle_error(&path, blocker));
                    }
                    Some(blocker) => {
                        *next_blocker += 1;
                        path.push((blocker, 0));
                    }
                    None => {
                        states[index] = SortState::Done;
                        self.order.push(index);
                    }
                }
            }
        }
        Ok(())
    }

    /// The error for the cycle that consists of the end of `path`, from `blocker` on.
    fn cycle_error(&self, path: &[(usize, usize)], blocker: usize) -> Error {
        let start = path.iter().position(|(index, _)| *index == blocker).unwrap_or_default();
        let mut path: Vec<String> = path[start..].iter().map(|(index, _)| self.subject(*index)).collect();
        path.push(self.subject(blocker));
        path.reverse();
        Error::BatchCycle { path }
    }

    fn subject(&self, index: usize) -> String {
        format!("{:?}", self.tasks[index].task.subject)
    }

    /// The indexes in the order in which the files are created.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The creator of each task.
    pub(super) fn creators(&self) -> impl Iterator<Item = &MemberName> {
        self.tasks.iter().map(|plan| &plan.task.created_by)
    }

    /// Whether a task of the batch depends on an existing task, or blocks one.
    pub(super) fn has_external_links(&self) -> bool {
        self.tasks.iter().any(|plan| !plan.task.blocks.is_empty() || !plan.task.blocked_by.is_empty())
    }

    /// The tasks of the batch, with ids from `first_id` on. `blocked_by` of each task is complete.
    /// `blocks` has only tasks of the batch: the caller adds existing tasks after it has created
    /// the files.
    pub(super) fn tasks(&self, first_id: TaskId) -> Vec<Task> {
        let id = |index: &usize| offset_id(first_id, *index);
        let tasks =
            self.tasks.iter().zip(&self.blocks).enumerate().map(|(index, (batch_task, blocks))| Task {
                blocks: blocks.iter().map(id).collect(),
                blocked_by: batch_task
                    .blocked_by_index
                    .iter()
                    .map(id)
                    .chain(dedup(&batch_task.task.blocked_by))
                    .collect(),
                ..batch_task.task.to_task(id(&index))
            });
        tasks.collect()
    }

    /// The dependencies between new and existing tasks, as pairs of blocker and blocked task.
    pub(super) fn external_links(&self, tasks: &[Task]) -> Vec<(TaskId, TaskId)> {
        let links = self.tasks.iter().zip(tasks).flat_map(|(batch_task, task)| {
            let blocker_links = batch_task.task.blocked_by.iter().map(|blocker| (*blocker, task.id));
            blocker_links.chain(batch_task.task.blocks.iter().map(|blocked| (task.id, *blocked)))
        });
        links.collect()
    }

    /// Checks the dependencies of the batch on existing tasks. `tasks` is the existing list.
    ///
    /// # Errors
    /// `NoSuchTask` for an id that does not exist; `BatchCycle` for a cycle through existing tasks.
    pub(super) fn check_links<'a>(
        &self,
        team: &TeamName,
        tasks: impl Iterator<Item = &'a Arc<Task>>,
    ) -> Result<(), Error> {
        let mut tasks: Vec<Arc<Task>> = tasks.cloned().collect();
        for id in self
            .tasks
            .iter()
            .flat_map(|batch_task| batch_task.task.blocks.iter().chain(&batch_task.task.blocked_by))
        {
            find_task(&tasks, *id).ok_or_else(|| Error::NoSuchTask { id: *id, team: team.clone() })?;
        }
        let last_id = tasks.last().map_or(0, |task| task.id.number());
        let Some(first_id) = TaskId::from_number(last_id + 1) else { return Ok(()) };
        let mut new_tasks = self.tasks(first_id);
        for (task, batch_task) in new_tasks.iter_mut().zip(&self.tasks) {
            task.blocks.extend(&batch_task.task.blocks);
        }
        tasks.extend(new_tasks.iter().cloned().map(Arc::new));
        // The batch itself has no cycle. So a cycle must lead from a new task to an existing task
        // and back.
        for (task, batch_task) in new_tasks.iter().zip(&self.tasks) {
            for blocked in &batch_task.task.blocks {
                if let Some(cycle) = find_cycle(&tasks, task.id, *blocked) {
                    return Err(self.external_cycle_error(first_id, &cycle));
                }
            }
        }
        Ok(())
    }

    fn external_cycle_error(&self, first_id: TaskId, path: &[TaskId]) -> Error {
        let name = |id: &TaskId| match id.number().checked_sub(first_id.number()) {
            Some(index) => self.subject(index as usize),
            None => id.to_string(),
        };
        Error::BatchCycle { path: path.iter().map(name).collect() }
    }
}

/// The id that is `offset` places after `first_id`. The caller has checked that enough ids are
/// free.
fn offset_id(first_id: TaskId, offset: usize) -> TaskId {
    let number = u32::try_from(offset).ok().and_then(|offset| first_id.number().checked_add(offset));
    number.and_then(TaskId::from_number).unwrap_or(first_id)
}

/// Removes duplicates and keeps the order.
fn dedup<T: Copy + Ord>(items: &[T]) -> Vec<T> {
    let mut unique = BTreeSet::new();
    items.iter().copied().filter(|item| unique.insert(*item)).collect()
}
