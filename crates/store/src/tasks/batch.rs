//! Tasks that are planned together: links between them by index, until they have ids. What it takes to refuse a
//! circle is known before any of them is made.

use super::new_task::BatchTask;
use crate::error::Error;
use protocol::id::TaskId;
use protocol::name::{AgentName, TeamName};
use protocol::task::{Task, find_cycle, find_task};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Planned tasks without a circle among themselves.
pub(super) struct TaskBatch {
    tasks: Vec<BatchTask>,
    /// All indexes, each after those that it waits for.
    order: Vec<usize>,
    /// For each, what waits for it.
    blocks: Vec<Vec<usize>>,
}

/// How far the search for a circle is with one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SortState {
    Unvisited,
    /// On the way that is being followed.
    OnPath,
    Done,
}

impl TaskBatch {
    /// Refuses an index that is none, and a circle.
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

    /// Depth first, with a stack of its own: a chain may be as long as the list.
    fn sort(&mut self) -> Result<(), Error> {
        let mut marks = vec![SortState::Unvisited; self.tasks.len()];
        for start in 0..self.tasks.len() {
            let mut way = vec![(start, 0)];
            while let Some((at, next)) = way.last_mut() {
                let at = *at;
                if marks[at] == SortState::Done {
                    way.pop();
                    continue;
                }
                marks[at] = SortState::OnPath;
                match self.tasks[at].blocked_by_index.get(*next).copied() {
                    Some(blocker) if marks[blocker] == SortState::OnPath => {
                        return Err(self.cycle_error(&way, blocker));
                    }
                    Some(blocker) => {
                        *next += 1;
                        way.push((blocker, 0));
                    }
                    None => {
                        marks[at] = SortState::Done;
                        self.order.push(at);
                    }
                }
            }
        }
        Ok(())
    }

    /// The way from `blocker` on, which was met a second time at its end.
    fn cycle_error(&self, way: &[(usize, usize)], blocker: usize) -> Error {
        let from = way.iter().position(|(at, _)| *at == blocker).unwrap_or_default();
        let mut way: Vec<String> = way[from..].iter().map(|(at, _)| self.subject(*at)).collect();
        way.push(self.subject(blocker));
        way.reverse();
        Error::BatchCycle { path: way }
    }

    fn subject(&self, at: usize) -> String {
        format!("{:?}", self.tasks[at].task.subject)
    }

    /// The order in which the files may appear.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Who makes each.
    pub(super) fn creators(&self) -> impl Iterator<Item = &AgentName> {
        self.tasks.iter().map(|plan| &plan.task.created_by)
    }

    /// True if any is linked to a task that is there already.
    pub(super) fn has_external_links(&self) -> bool {
        self.tasks.iter().any(|plan| !plan.task.blocks.is_empty() || !plan.task.blocked_by.is_empty())
    }

    /// The tasks with the ids from `first` on and all links that their own files say.
    pub(super) fn tasks(&self, first: TaskId) -> Vec<Task> {
        let id = |at: &usize| offset_id(first, *at);
        let made = self.tasks.iter().zip(&self.blocks).enumerate().map(|(at, (plan, blocks))| Task {
            blocks: blocks.iter().map(id).collect(),
            blocked_by: plan.blocked_by_index.iter().map(id).chain(dedup(&plan.task.blocked_by)).collect(),
            ..plan.task.to_task(id(&at))
        });
        made.collect()
    }

    /// Blocker and blocked of each link to a task that was there before.
    pub(super) fn external_links(&self, tasks: &[Task]) -> Vec<(TaskId, TaskId)> {
        let links = self.tasks.iter().zip(tasks).flat_map(|(plan, task)| {
            let before = plan.task.blocked_by.iter().map(|blocker| (*blocker, task.id));
            before.chain(plan.task.blocks.iter().map(|blocked| (task.id, *blocked)))
        });
        links.collect()
    }

    /// Refuses links to nowhere, and circles that lead through `all` that is there.
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
        // Only a way out of the new ones and back into them can close a circle that is not among them alone.
        for (task, plan) in new.iter().zip(&self.tasks) {
            for blocked in &plan.task.blocks {
                if let Some(way) = find_cycle(&all, task.id, *blocked) {
                    return Err(self.external_cycle_error(first, &way));
                }
            }
        }
        Ok(())
    }

    fn external_cycle_error(&self, first: TaskId, way: &[TaskId]) -> Error {
        let name = |id: &TaskId| match id.number().checked_sub(first.number()) {
            Some(at) => self.subject(at as usize),
            None => id.to_string(),
        };
        Error::BatchCycle { path: way.iter().map(name).collect() }
    }
}

/// The id `by` places after `first`; the caller has seen that there are as many.
fn offset_id(first: TaskId, by: usize) -> TaskId {
    let number = u32::try_from(by).ok().and_then(|by| first.number().checked_add(by));
    number.and_then(TaskId::from_number).unwrap_or(first)
}

/// Each once, in the order of their first.
fn dedup<T: Copy + Ord>(all: &[T]) -> Vec<T> {
    let mut seen = BTreeSet::new();
    all.iter().copied().filter(|one| seen.insert(*one)).collect()
}
