//! A new task. Its id is one above all that are or were; the file appears whole and is never put over another.

use super::listed::{Listed, file_name, ids, mark};
use super::turn::Turn;
use super::{LOCK, Tasks};
use crate::error::Error;
use crate::file::{ATTEMPTS, FILE_LIMIT, Temporary, settle};
use crate::lock::Lock;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, cycle};
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

    fn task(&self, id: TaskId) -> Task {
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
            extra: Map::new(),
        }
    }
}

impl Tasks {
    /// Adds a task.
    pub fn create(&self, mut new: NewTask) -> Result<Task, Error> {
        self.team.writable()?;
        let members = self.members()?;
        new.owner = new.owner.map(|name| self.owner(&members, &name)).transpose()?;
        let task = {
            let turn = Turn::take(self.team.task_dir_made()?)?;
            self.linked(&turn, &new)?
        };
        self.tell(&members, &task, &new.by)?;
        Ok(task)
    }

    /// Adds the tracking task of a spawned agent: in progress, without an owner, left out of listings.
    pub fn create_internal(&self, agent: &AgentName, prompt: &str) -> Result<Task, Error> {
        self.team.writable()?;
        let turn = Turn::take(self.team.task_dir_made()?)?;
        self.placed(&turn, |id| Task {
            status: TaskStatus::InProgress,
            description: prompt.to_owned(),
            metadata: Some(Map::from_iter([("_internal".to_owned(), Value::Bool(true))])),
            ..NewTask::new(agent.as_str(), agent).task(id)
        })
    }

    fn linked(&self, turn: &Turn, new: &NewTask) -> Result<Task, Error> {
        let (blockers, blocked) = (&new.blocked_by, &new.blocks);
        self.linkable(turn, new)?;
        // What it waits for stands in the file from its first moment, or a claimant could be faster.
        let task = self.placed(turn, |id| Task { blocked_by: unique(blockers), ..new.task(id) })?;
        if blockers.is_empty() && blocked.is_empty() {
            return Ok(task);
        }
        self.change_in(turn, &mut |draft| {
            blockers.iter().try_for_each(|blocker| draft.link(*blocker, task.id))?;
            blocked.iter().try_for_each(|waiting| draft.link(task.id, *waiting))?;
            draft.task(task.id).cloned()
        })
    }

    /// Refuses links to nowhere or in a circle while nothing is made yet.
    fn linkable(&self, turn: &Turn, new: &NewTask) -> Result<(), Error> {
        if new.blocks.is_empty() && new.blocked_by.is_empty() {
            return Ok(());
        }
        let all = Listed::read(self.team.way(), turn.dir())?.tasks();
        for id in new.blocks.iter().chain(&new.blocked_by) {
            all.iter().find(|task| task.id == *id).ok_or_else(|| self.no_task(*id))?;
        }
        for (blocked, blocker) in new.blocks.iter().flat_map(|a| new.blocked_by.iter().map(move |b| (a, b))) {
            if let Some(way) = cycle(&all, *blocker, *blocked) {
                return Err(Error::Cycle { way });
            }
        }
        Ok(())
    }

    /// Puts the file of a new task in place, under the next free id.
    fn placed(&self, turn: &Turn, task: impl Fn(TaskId) -> Task) -> Result<Task, Error> {
        let dir = turn.dir();
        for _ in 0..ATTEMPTS {
            let id = self.free_id(turn)?;
            let (task, name) = (task(id), file_name(id));
            let text = task.to_text();
            if text.len() as u64 > FILE_LIMIT {
                let (size, limit) = (text.len() as u64, FILE_LIMIT);
                return Err(Error::TooLarge { path: dir.join(&name), size, limit });
            }
            let durability = self.team.way().durability;
            let temporary = Temporary::write(dir, &name, text.as_bytes(), 0o600, durability)?;
            let lock = Lock::acquire(dir, LOCK)?;
            if self.free_id(turn)? == id && lock.is_ours()? && temporary.create(&name)? {
                drop(lock);
                settle(dir, durability)?;
                return Ok(task);
            }
        }
        Err(Error::Contended(self.path()))
    }

    fn free_id(&self, turn: &Turn) -> Result<TaskId, Error> {
        let (highest, _) = mark(turn.dir())?;
        let last = ids(turn.dir())?.last().map_or(0, |id| id.number());
        let full = || Error::Malformed { path: self.path(), why: "it has no id left".to_owned() };
        highest.max(last).checked_add(1).and_then(TaskId::from_number).ok_or_else(full)
    }
}

fn unique(ids: &[TaskId]) -> Vec<TaskId> {
    let mut unique = Vec::new();
    for id in ids {
        if !unique.contains(id) {
            unique.push(*id);
        }
    }
    unique
}
