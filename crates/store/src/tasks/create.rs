//! New tasks. Ids go on above all that are or were; a file appears whole and is never put over another.
//!
//! Of several, each has what it waits for in its file from its first moment, and its blockers' files are there
//! before its own: a missing blocker counts as over, so the other way round a claimant, or a crash, could find
//! a task that waits for nothing. Their ids are reserved by the high-water mark first, so that what a crash
//! left out is never another task's id.

use super::batch::TaskBatch;
use super::cache::list_ids;
use super::high_water_mark::{raise_high_water_mark, read_high_water_mark};
use super::new_task::{BatchTask, NewTask};
use super::task_list::{ReadScope, Tasks};
use super::ticket::Ticket;
use crate::error::Error;
use crate::file::{FILE_LIMIT, MAX_ATTEMPTS, TempFile, UNLOCKED_ATTEMPTS, sync_dir};
use crate::layout::{LOCK_FILE, task_file_name};
use crate::lock::Lock;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use serde_json::{Map, Value};

impl Tasks {
    /// Adds a task.
    pub fn create(&self, new: NewTask) -> Result<Task, Error> {
        let mut made = self.create_all(vec![BatchTask { task: new, blocked_by_index: Vec::new() }])?;
        Ok(made.pop().expect("of one planned task one is made"))
    }

    /// Adds tasks in one turn at the list, with ids ascending in the order given, and tells each owner once.
    ///
    /// Whatever would be refused is refused before anything is made: an owner who is no member, a link to
    /// nowhere, a circle (`JsonError::BatchCycle`). After another failure, a full disk say, some may be there.
    pub fn create_all(&self, mut planned: Vec<BatchTask>) -> Result<Vec<Task>, Error> {
        self.team.check_writable()?;
        let members = self.possible_owners()?;
        for new in planned.iter_mut().map(|plan| &mut plan.task) {
            new.owner = new.owner.take().map(|name| self.resolve_owner(&members, &name)).transpose()?;
        }
        let batch = TaskBatch::new(planned)?;
        let tasks = {
            let dir = self.team.create_tasks_dir()?;
            if batch.has_external_links() {
                self.team.task_cache().load_if_empty(self.team.io(), dir)?;
            }
            self.create_with_links(&Ticket::acquire(dir)?, &batch)?
        };
        self.notify_owners(&members, tasks.iter().zip(batch.creators()))?;
        Ok(tasks)
    }

    /// Adds the tracking task of a spawned agent: in progress, without an owner, left out of listings.
    pub fn create_internal(&self, agent: &AgentName, prompt: &str) -> Result<Task, Error> {
        self.team.check_writable()?;
        let turn = Ticket::acquire(self.team.create_tasks_dir()?)?;
        let mut placed = self.place_files(&turn, &[0], |first| {
            vec![Task {
                status: TaskStatus::InProgress,
                description: prompt.to_owned(),
                metadata: Some(Map::from_iter([("_internal".to_owned(), Value::Bool(true))])),
                ..NewTask::new(agent.as_str(), agent).to_task(first)
            }]
        })?;
        Ok(placed.pop().expect("of one task one is placed"))
    }

    fn create_with_links(&self, turn: &Ticket, batch: &TaskBatch) -> Result<Vec<Task>, Error> {
        if batch.has_external_links() {
            let all = self.team.task_cache().refresh(self.team.io(), turn.dir())?;
            batch.check_links(self.team.name(), all.iter().map(|listed| &listed.task))?;
        }
        let mut tasks = self.place_files(turn, batch.order(), |first| batch.tasks(first))?;
        let outer = batch.external_links(&tasks);
        if !outer.is_empty() {
            self.change_with_ticket(turn, ReadScope::List, &mut |draft| {
                outer.iter().try_for_each(|(blocker, blocked)| draft.link(*blocker, *blocked))
            })?;
            for task in &mut tasks {
                *task = self.get(&task.id)?;
            }
        }
        Ok(tasks)
    }

    /// Puts the files of new tasks in place, in this order of their indexes. `make` says what they are, given
    /// the first free id; with no other maker about it is asked once.
    fn place_files(
        &self,
        turn: &Ticket,
        order: &[usize],
        make: impl Fn(TaskId) -> Vec<Task>,
    ) -> Result<Vec<Task>, Error> {
        let (way, dir) = (self.team.io(), turn.dir());
        for attempt in 0..MAX_ATTEMPTS {
            let early = (attempt >= UNLOCKED_ATTEMPTS).then(|| Lock::acquire(dir, LOCK_FILE)).transpose()?;
            let Some(first) = self.first_free_id(turn, order.len())? else { return Ok(Vec::new()) };
            let tasks = make(first);
            let files =
                order.iter().map(|at| self.write_temp_file(turn, &tasks[*at])).collect::<Result<_, _>>()?;
            let lock = early.map_or_else(|| Lock::acquire(dir, LOCK_FILE), Ok)?;
            if self.first_free_id(turn, order.len())? == Some(first)
                && lock.is_ours()?
                && self.put_files(turn, &lock, &tasks, files)?
            {
                drop(lock);
                sync_dir(dir, way.durability)?;
                return Ok(tasks);
            }
        }
        Err(Error::Contended(self.path()))
    }

    /// The file of a new task, beside its place.
    fn write_temp_file<'d>(&self, turn: &Ticket<'d>, task: &Task) -> Result<(String, TempFile<'d>), Error> {
        let (dir, name, text) = (turn.dir(), task_file_name(task.id), task.to_text());
        if text.len() as u64 > FILE_LIMIT {
            let (size, limit) = (text.len() as u64, FILE_LIMIT);
            return Err(Error::TooLarge { path: dir.join(&name), size, limit });
        }
        let temporary = TempFile::write(dir, &name, text.as_bytes(), 0o600, self.team.io().durability)?;
        Ok((name, temporary))
    }

    /// False if the first place was taken meanwhile, by somebody who takes no lock.
    fn put_files(
        &self,
        turn: &Ticket,
        lock: &Lock,
        tasks: &[Task],
        files: Vec<(String, TempFile)>,
    ) -> Result<bool, Error> {
        if let [_, .., last] = tasks
            && let Some((_, mark)) = raise_high_water_mark(self.team.io(), turn.dir(), last.id)?
            && !mark.commit(lock)?
        {
            return Ok(false);
        }
        for (at, (name, file)) in files.into_iter().enumerate() {
            match file.create(&name)? {
                true => {}
                false if at == 0 => return Ok(false),
                false => return Err(Error::Contended(turn.dir().join(&name))),
            }
        }
        Ok(true)
    }

    /// The first of `count` ids that nobody has or had; none if there are none to make.
    fn first_free_id(&self, turn: &Ticket, count: usize) -> Result<Option<TaskId>, Error> {
        let Some(more) = count.checked_sub(1) else { return Ok(None) };
        let (highest, _) = read_high_water_mark(turn.dir())?;
        let highest = highest.max(list_ids(turn.dir())?.last().map_or(0, |id| id.number()));
        let full = || Error::Malformed { path: self.path(), reason: "it has no id left".to_owned() };
        let last = u32::try_from(more).ok().and_then(|more| highest.checked_add(1)?.checked_add(more));
        last.and_then(TaskId::from_number).ok_or_else(full)?;
        Ok(TaskId::from_number(highest + 1))
    }
}
