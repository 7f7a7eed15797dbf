//! New tasks. Ids go on above all that are or were; a file appears whole and is never put over another.
//!
//! Of several, each has what it waits for in its file from its first moment, and its blockers' files are there
//! before its own: a missing blocker counts as over, so the other way round a claimant, or a crash, could find
//! a task that waits for nothing. Their ids are reserved by the high-water mark first, so that what a crash
//! left out is never another task's id.

use super::batch::Batch;
use super::draft::raised;
use super::listed::{file_name, ids, mark};
use super::turn::Turn;
use super::{LOCK, Scope, Tasks};
use crate::error::Error;
use crate::file::{ATTEMPTS, FILE_LIMIT, OPTIMISTIC, Temporary, settle};
use crate::lock::Lock;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus};
use serde_json::{Map, Value};

/// What a task is made of.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// What to do, in the imperative.
    pub subject: String,
    /// More of it.
    pub description: String,
    /// What is shown while it runs.
    pub active_form: Option<String>,
    /// A member, who is told.
    pub owner: Option<AgentName>,
    /// What waits for it.
    pub blocks: Vec<TaskId>,
    /// What it waits for.
    pub blocked_by: Vec<TaskId>,
    /// Anything else.
    pub metadata: Option<Map<String, Value>>,
    /// Who makes it.
    pub by: AgentName,
}

impl NewTask {
    /// A task with a subject, and nothing else yet.
    pub fn new(subject: &str, by: &AgentName) -> NewTask {
        NewTask {
            subject: subject.to_owned(),
            description: String::new(),
            active_form: None,
            owner: None,
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: None,
            by: by.clone(),
        }
    }

    pub(super) fn task(&self, id: TaskId) -> Task {
        Task {
            id,
            subject: self.subject.clone(),
            description: self.description.clone(),
            active_form: self.active_form.clone(),
            status: TaskStatus::Pending,
            owner: self.owner.clone(),
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: self.metadata.clone(),
            unknown_fields: Map::new(),
        }
    }
}

/// One of several tasks that are made together.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The task; its links name tasks that are there already.
    pub task: NewTask,
    /// Which of the others it waits for, by their index from 0; later ones too.
    pub after: Vec<usize>,
}

impl Tasks {
    /// Adds a task.
    pub fn create(&self, new: NewTask) -> Result<Task, Error> {
        let mut made = self.create_all(vec![Planned { task: new, after: Vec::new() }])?;
        Ok(made.pop().expect("of one planned task one is made"))
    }

    /// Adds tasks in one turn at the list, with ids ascending in the order given, and tells each owner once.
    ///
    /// Whatever would be refused is refused before anything is made: an owner who is no member, a link to
    /// nowhere, a circle ([`Error::PlannedCycle`]). After another failure, a full disk say, some may be there.
    pub fn create_all(&self, mut planned: Vec<Planned>) -> Result<Vec<Task>, Error> {
        self.team.writable()?;
        let members = self.members()?;
        for new in planned.iter_mut().map(|plan| &mut plan.task) {
            new.owner = new.owner.take().map(|name| self.owner(&members, &name)).transpose()?;
        }
        let batch = Batch::of(planned)?;
        let tasks = {
            let dir = self.team.task_dir_made()?;
            if batch.has_outer_links() {
                self.team.seen().look_first(self.team.way(), dir)?;
            }
            self.linked(&Turn::take(dir)?, &batch)?
        };
        self.tell_all(&members, tasks.iter().zip(batch.makers()))?;
        Ok(tasks)
    }

    /// Adds the tracking task of a spawned agent: in progress, without an owner, left out of listings.
    pub fn create_internal(&self, agent: &AgentName, prompt: &str) -> Result<Task, Error> {
        self.team.writable()?;
        let turn = Turn::take(self.team.task_dir_made()?)?;
        let mut placed = self.placed(&turn, &[0], |first| {
            vec![Task {
                status: TaskStatus::InProgress,
                description: prompt.to_owned(),
                metadata: Some(Map::from_iter([("_internal".to_owned(), Value::Bool(true))])),
                ..NewTask::new(agent.as_str(), agent).task(first)
            }]
        })?;
        Ok(placed.pop().expect("of one task one is placed"))
    }

    fn linked(&self, turn: &Turn, batch: &Batch) -> Result<Vec<Task>, Error> {
        if batch.has_outer_links() {
            let all = self.team.seen().look(self.team.way(), turn.dir())?;
            batch.linkable(self.team.name(), all.iter().map(|listed| &listed.task))?;
        }
        let mut tasks = self.placed(turn, batch.order(), |first| batch.tasks(first))?;
        let outer = batch.outer_links(&tasks);
        if !outer.is_empty() {
            self.change_in(turn, Scope::List, &mut |draft| {
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
    fn placed(
        &self,
        turn: &Turn,
        order: &[usize],
        make: impl Fn(TaskId) -> Vec<Task>,
    ) -> Result<Vec<Task>, Error> {
        let (way, dir) = (self.team.way(), turn.dir());
        for attempt in 0..ATTEMPTS {
            let early = (attempt >= OPTIMISTIC).then(|| Lock::acquire(dir, LOCK)).transpose()?;
            let Some(first) = self.free_ids(turn, order.len())? else { return Ok(Vec::new()) };
            let tasks = make(first);
            let files = order.iter().map(|at| self.written(turn, &tasks[*at])).collect::<Result<_, _>>()?;
            let lock = early.map_or_else(|| Lock::acquire(dir, LOCK), Ok)?;
            if self.free_ids(turn, order.len())? == Some(first)
                && lock.is_ours()?
                && self.put(turn, &lock, &tasks, files)?
            {
                drop(lock);
                settle(dir, way.durability)?;
                return Ok(tasks);
            }
        }
        Err(Error::Contended(self.path()))
    }

    /// The file of a new task, beside its place.
    fn written<'d>(&self, turn: &Turn<'d>, task: &Task) -> Result<(String, Temporary<'d>), Error> {
        let (dir, name, text) = (turn.dir(), file_name(task.id), task.to_text());
        if text.len() as u64 > FILE_LIMIT {
            let (size, limit) = (text.len() as u64, FILE_LIMIT);
            return Err(Error::TooLarge { path: dir.join(&name), size, limit });
        }
        let temporary = Temporary::write(dir, &name, text.as_bytes(), 0o600, self.team.way().durability)?;
        Ok((name, temporary))
    }

    /// False if the first place was taken meanwhile, by somebody who takes no lock.
    fn put(
        &self,
        turn: &Turn,
        lock: &Lock,
        tasks: &[Task],
        files: Vec<(String, Temporary)>,
    ) -> Result<bool, Error> {
        if let [_, .., last] = tasks
            && let Some((_, mark)) = raised(self.team.way(), turn.dir(), last.id)?
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
    fn free_ids(&self, turn: &Turn, count: usize) -> Result<Option<TaskId>, Error> {
        let Some(more) = count.checked_sub(1) else { return Ok(None) };
        let (highest, _) = mark(turn.dir())?;
        let highest = highest.max(ids(turn.dir())?.last().map_or(0, |id| id.number()));
        let full = || Error::Malformed { path: self.path(), why: "it has no id left".to_owned() };
        let last = u32::try_from(more).ok().and_then(|more| highest.checked_add(1)?.checked_add(more));
        last.and_then(TaskId::from_number).ok_or_else(full)?;
        Ok(TaskId::from_number(highest + 1))
    }
}
