//! Taking a task: owner and status in one step, of several claimants one.

use super::draft::Draft;
use super::{Scope, Tasks};
use crate::error::Error;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, with_metadata};
use serde_json::{Map, Value};
use std::sync::Arc;

impl Tasks {
    /// Gives `owner` the task `id`, or without one its own first startable task, or the lowest available.
    ///
    /// Refused where somebody has it ([`Error::Claimed`], [`Error::AlreadyTheirs`]) or it waits
    /// ([`Error::Blocked`]); with nothing to take it is [`Error::NothingAvailable`]. An earlier failure is
    /// forgotten.
    pub fn claim(&self, id: Option<&TaskId>, owner: &AgentName) -> Result<Task, Error> {
        let members = self.members()?;
        let owner = self.owner(&members, owner)?;
        let task = match id {
            Some(id) => self.change_of(Scope::Blocked(*id), |draft| take(draft, *id, &owner))?,
            None => self.take_next(&self.list_shared()?, &owner)?,
        };
        self.tell(&members, &task, &owner)?;
        Ok(task)
    }

    /// Looks without a turn at the list, so that nobody waits for a look, least of all for one that finds nothing;
    /// what it chose is looked at again in the turn. Where others were faster it looks and takes in one turn.
    fn take_next(&self, all: &[Arc<Task>], owner: &AgentName) -> Result<Task, Error> {
        let id = self.next(all, owner)?;
        match self.change_of(Scope::Blocked(id), |draft| take(draft, id, owner)) {
            Err(
                Error::Claimed { .. }
                | Error::AlreadyTheirs { .. }
                | Error::Transition { .. }
                | Error::Blocked { .. }
                | Error::NoSuchTask { .. },
            ) => self.change_of(Scope::List, |draft| {
                let id = self.next(draft.tasks(), owner)?;
                take(draft, id, owner)
            }),
            taken => taken,
        }
    }

    /// The lowest task that `owner` has in progress and that has not failed: what an earlier life of it left,
    /// for the next one to go on with. Writes nothing. One that waits for others by now is left out.
    pub fn resume(&self, owner: &AgentName) -> Result<Option<Task>, Error> {
        Ok(left(&self.list_shared()?, owner))
    }

    /// As [`Tasks::resume`], but for those that are `settled`; else as [`Tasks::claim`] without an id. One look
    /// serves both.
    pub fn resume_or_claim(
        &self,
        owner: &AgentName,
        settled: impl Fn(TaskId) -> bool,
    ) -> Result<Task, Error> {
        let all = self.list_shared()?;
        if let Some(task) = left(&all, owner).filter(|task| !settled(task.id)) {
            return Ok(task);
        }
        self.next(&all, owner)?;
        let members = self.members()?;
        let owner = self.owner(&members, owner)?;
        let task = self.take_next(&all, &owner)?;
        self.tell(&members, &task, &owner)?;
        Ok(task)
    }

    fn next(&self, all: &[Arc<Task>], owner: &AgentName) -> Result<TaskId, Error> {
        let own = |task: &&Arc<Task>| task.owner.as_ref() == Some(owner) && task.startable(all);
        let found = all.iter().find(own).or_else(|| all.iter().find(|task| task.available(all)));
        found.map(|task| task.id).ok_or_else(|| Error::NothingAvailable(self.team.name().clone()))
    }
}

fn left(all: &[Arc<Task>], owner: &AgentName) -> Option<Task> {
    let left = |task: &&Arc<Task>| {
        task.status == TaskStatus::InProgress
            && task.owner.as_ref() == Some(owner)
            && !task.is_internal()
            && task.failure().is_none()
            && task.open_blockers(all).is_empty()
    };
    all.iter().find(left).map(|task| Task::clone(task))
}

fn take(draft: &mut Draft, id: TaskId, owner: &AgentName) -> Result<Task, Error> {
    claimable(draft, id, owner)?;
    draft.set(id, &[("status", Some("in_progress".into())), ("owner", Some(Value::from(owner.as_str())))])?;
    forget_failure(draft, id)?;
    draft.task(id).cloned()
}

fn claimable(draft: &mut Draft, id: TaskId, owner: &AgentName) -> Result<(), Error> {
    // The file may say more than the list did when it was read; then this is drafted again.
    let task = draft.main(id)?;
    let begun = task.status == TaskStatus::InProgress;
    match &task.owner {
        Some(other) if begun && other == owner => {
            return Err(Error::AlreadyTheirs { id, owner: other.clone() });
        }
        Some(other) if begun || (other != owner && task.status == TaskStatus::Pending) => {
            return Err(Error::Claimed { id, owner: other.clone() });
        }
        _ => {}
    }
    if task.status != TaskStatus::Pending || task.is_internal() {
        return Err(Error::Transition { id, from: task.status.to_string(), to: "in_progress".to_owned() });
    }
    blocked(draft, &task)
}

/// What begins anew has not failed.
pub(super) fn forget_failure(draft: &mut Draft, id: TaskId) -> Result<(), Error> {
    if draft.task(id)?.metadata.as_ref().is_none_or(|metadata| !metadata.contains_key("failure")) {
        return Ok(());
    }
    let forget = Map::from_iter([("failure".to_owned(), Value::Null)]);
    draft.rewrite(id, |text| with_metadata(text, &forget))
}

/// Refuses a task that waits for others.
pub(super) fn blocked(draft: &Draft, task: &Task) -> Result<(), Error> {
    let blockers = task.open_blockers(draft.tasks());
    if blockers.is_empty() { Ok(()) } else { Err(Error::Blocked { id: task.id, blockers }) }
}
