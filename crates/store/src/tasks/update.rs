//! Changing a task, by the rules of its life: pending, in progress, completed, and back as far as that goes.

use super::claim::{check_unblocked, clear_failure};
use super::task_list::{ReadScope, Tasks};
use super::transaction::TaskTransaction;
use crate::error::Error;
use protocol::id::TaskId;
use protocol::name::AgentName;
use protocol::task::{Task, TaskStatus, with_metadata};
use serde_json::{Map, Value};

/// What to change; nothing by default.
#[derive(Debug, Clone, Default)]
pub struct TaskUpdate {
    /// What to do.
    pub subject: Option<String>,
    /// More of it.
    pub description: Option<String>,
    /// What is shown while it runs.
    pub active_form: Option<String>,
    /// How far it is; `Deleted` removes it.
    pub status: Option<TaskStatus>,
    /// A member, who is told.
    pub owner: Option<AgentName>,
    /// What shall wait for it.
    pub add_blocks: Vec<TaskId>,
    /// What it shall wait for.
    pub add_blocked_by: Vec<TaskId>,
    /// Merged into what is there; null takes a key out.
    pub metadata: Option<Map<String, Value>>,
}

impl TaskUpdate {
    /// To a status, and no more.
    fn with_status(status: TaskStatus) -> TaskUpdate {
        TaskUpdate { status: Some(status), ..TaskUpdate::default() }
    }

    /// Whether a link closes a circle is asked of the whole list, and whether a task may start, of what it waits for.
    fn read_scope(&self, id: TaskId) -> ReadScope {
        let links = !self.add_blocks.is_empty() || !self.add_blocked_by.is_empty();
        match self.status {
            _ if links => ReadScope::List,
            Some(TaskStatus::InProgress) => ReadScope::TaskAndBlockers(id),
            _ => ReadScope::Task(id),
        }
    }
}

impl Tasks {
    /// Changes a task in one step. Started without an owner, it is `by`'s. With a status set, an earlier
    /// failure is forgotten; started again or not, what waits for others is refused (`JsonError::Blocked`). Started by a
    /// teammate it is taken by it: of several one has it, and the others are refused (`JsonError::Claimed`).
    pub fn update(&self, id: &TaskId, update: TaskUpdate, by: &AgentName) -> Result<Task, Error> {
        if update.status == Some(TaskStatus::Deleted) {
            return self.delete(id);
        }
        if update.owner.is_none() && update.status != Some(TaskStatus::InProgress) {
            return self.change(update.read_scope(*id), |draft| apply_update(draft, *id, &update, None));
        }
        let members = self.possible_owners()?;
        let owner = self.resolve_owner(&members, update.owner.as_ref().unwrap_or(by));
        let explicit = update.owner.is_some();
        let owner = if explicit { Some(owner?) } else { owner.ok() };
        let mut had = None;
        let task = self.change(update.read_scope(*id), |draft| {
            let task = draft.task(*id)?;
            had.clone_from(&task.owner);
            let takes = !explicit && !by.is_lead();
            if let Some(other) = had.clone().filter(|had| takes && owner.as_ref() != Some(had)) {
                return Err(Error::TaskClaimed { id: *id, owner: other });
            }
            let owner = owner.as_ref().filter(|_| explicit || had.is_none());
            if owner.is_none() && had.is_none() {
                return Err(self.resolve_owner(&members, by).err().unwrap_or_else(|| self.no_such_task(*id)));
            }
            apply_update(draft, *id, &update, owner)
        })?;
        if task.owner != had {
            self.notify_owner(&members, &task, by)?;
        }
        Ok(task)
    }

    /// Says that a task is done, whatever failed before; again is fine.
    pub fn complete(&self, id: &TaskId, by: &AgentName) -> Result<Task, Error> {
        self.update(id, TaskUpdate::with_status(TaskStatus::Completed), by)
    }

    /// Gives a task back: pending, nobody's, and its failure forgotten. If it was in progress, that was an
    /// attempt ([`Task::attempts`]).
    pub fn release(&self, id: &TaskId, by: &AgentName) -> Result<Task, Error> {
        self.update(id, TaskUpdate::with_status(TaskStatus::Pending), by)
    }

    /// As [`Tasks::release`], but in the same step it is `owner`'s to take, who is told, if it was not before.
    pub fn release_to(&self, id: &TaskId, owner: &AgentName, by: &AgentName) -> Result<Task, Error> {
        let owner = Some(owner.clone());
        self.update(id, TaskUpdate { owner, ..TaskUpdate::with_status(TaskStatus::Pending) }, by)
    }

    /// Says why a task's work failed. It stays its owner's and in progress, so that nobody takes it up again.
    pub fn fail(&self, id: &TaskId, failure: &str) -> Result<Task, Error> {
        let metadata = Map::from_iter([("failure".to_owned(), Value::from(failure))]);
        let update = TaskUpdate { metadata: Some(metadata), ..TaskUpdate::default() };
        self.change(ReadScope::Task(*id), |draft| apply_update(draft, *id, &update, None))
    }

    /// Removes a task for good, with all links to it; its id is not used again. Returns it as it was, deleted.
    pub fn delete(&self, id: &TaskId) -> Result<Task, Error> {
        let mut task = self.change(ReadScope::List, |draft| {
            let task = draft.task(*id)?.clone();
            draft.remove(*id)?;
            Ok(task)
        })?;
        task.status = TaskStatus::Deleted;
        Ok(task)
    }
}

/// Drafts the update; `owner` is the one to set, if any.
fn apply_update(
    draft: &mut TaskTransaction,
    id: TaskId,
    update: &TaskUpdate,
    owner: Option<&AgentName>,
) -> Result<Task, Error> {
    draft.open_main_task(id)?;
    let texts = [
        ("subject", &update.subject),
        ("description", &update.description),
        ("activeForm", &update.active_form),
    ];
    for (field, text) in texts {
        if let Some(text) = text {
            draft.set(id, &[(field, Some(Value::from(text.as_str())))])?;
        }
    }
    update.add_blocks.iter().try_for_each(|waiting| draft.link(id, *waiting))?;
    update.add_blocked_by.iter().try_for_each(|blocker| draft.link(*blocker, id))?;
    if let Some(status) = &update.status {
        set_status(draft, id, status)?;
    }
    if let Some(owner) = owner {
        draft.set(id, &[("owner", Some(Value::from(owner.as_str())))])?;
    }
    if let Some(metadata) = &update.metadata {
        draft.edit_text(id, |text| with_metadata(text, metadata))?;
    }
    draft.task(id).cloned()
}

fn set_status(draft: &mut TaskTransaction, id: TaskId, to: &TaskStatus) -> Result<(), Error> {
    use TaskStatus::{Completed, InProgress, Pending};
    let task = draft.task(id)?.clone();
    match (&task.status, to) {
        (Pending | InProgress | Completed, InProgress) => check_unblocked(draft, &task)?,
        (Pending | InProgress, Pending | Completed) | (Completed, Completed) => {}
        (from, to) => {
            return Err(Error::InvalidTransition { id, from: from.to_string(), to: to.to_string() });
        }
    }
    if *to == Pending {
        draft.set(id, &[("owner", None)])?;
    }
    if (&task.status, to) == (&InProgress, &Pending) {
        let attempts = Map::from_iter([("attempts".to_owned(), Value::from(task.attempts() + 1))]);
        draft.edit_text(id, |text| with_metadata(text, &attempts))?;
    }
    clear_failure(draft, id)?;
    if task.status == *to {
        return Ok(());
    }
    draft.set(id, &[("status", Some(Value::from(to.as_str())))])
}
