//! Updates tasks by the rules for their status: pending, in progress, completed.

use super::claim::{check_unblocked, clear_failure};
use super::task_list_handle::{ReadScope, Tasks};
use super::transaction::TaskTransaction;
use crate::error::Error;
use protocol::length_limits_of_texts::{TextLimit, TextTooLong};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus, with_metadata};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};

/// The fields of a task to change. `None` and empty fields stay unchanged.
#[derive(Debug, Clone, Default)]
pub struct TaskUpdate {
    /// The new subject: what to do.
    pub subject: Option<String>,
    /// Details of the task.
    pub description: Option<String>,
    /// Text to show while the task is in progress.
    pub active_form: Option<String>,
    /// The new status. `Deleted` deletes the task.
    pub status: Option<TaskStatus>,
    /// The new owner, a member. The owner is notified.
    pub owner: Option<MemberName>,
    /// More tasks that this one blocks.
    pub add_blocks: Vec<TaskId>,
    /// More tasks that block this one.
    pub add_blocked_by: Vec<TaskId>,
    /// Tasks that do not block this one any more. They need not exist.
    pub remove_blocked_by: Vec<TaskId>,
    /// Fields to merge into the metadata. A null removes a field.
    pub metadata: Option<Map<String, Value>>,
}

impl TaskUpdate {
    /// An update of the status alone.
    pub(crate) fn with_status(status: TaskStatus) -> TaskUpdate {
        TaskUpdate { status: Some(status), ..TaskUpdate::default() }
    }

    /// Checks the length of each text of the update. `task` is the task after the update. The limit
    /// for metadata applies to all metadata of this task, including fields that the update does not
    /// change.
    fn check_text_lengths(&self, task: &Task) -> Result<(), TextTooLong> {
        let TaskUpdate { subject, description, active_form, metadata, .. } = self;
        TextLimit::TASK_SUBJECT.check_all(subject)?;
        TextLimit::TASK_DESCRIPTION.check_all(description)?;
        TextLimit::TASK_ACTIVE_FORM.check_all(active_form)?;
        metadata.as_ref().map_or(Ok(()), |_| TextLimit::TASK_METADATA.check_json(&task.metadata))
    }

    /// The tasks that must be read for this update. To change dependencies, the whole list is
    /// needed: the files of the other tasks change too, and a cycle must be found. To start a task,
    /// its blockers are needed.
    fn read_scope(&self, id: TaskId) -> ReadScope {
        let links = [&self.add_blocks, &self.add_blocked_by, &self.remove_blocked_by];
        let links = links.iter().any(|ids| !ids.is_empty());
        match self.status {
            _ if links => ReadScope::List,
            Some(TaskStatus::InProgress) => ReadScope::TaskAndBlockers(id),
            _ => ReadScope::Task(id),
        }
    }
}

impl Tasks {
    /// Changes a task in one step. `by` is the member or lead that makes the change.
    ///
    /// If a task without an owner is started, `by` becomes its owner. If the update sets a status,
    /// a recorded failure is removed. If the owner changes, the new owner is notified.
    ///
    /// # Errors
    /// `TextTooLong`; `TaskBlocked` if the update starts a task that has open blockers;
    /// `TaskClaimed` if a teammate starts a task of another member; `InvalidTransition`; errors of
    /// the files.
    pub fn update(&self, id: &TaskId, update: TaskUpdate, by: &MemberName) -> Result<Task, Error> {
        if update.status == Some(TaskStatus::Deleted) {
            return self.delete(id);
        }
        if update.owner.is_none() && update.status != Some(TaskStatus::InProgress) {
            return self
                .change(update.read_scope(*id), |draft| apply_checked_update(draft, *id, &update, None));
        }
        let members = self.possible_owners()?;
        let owner = self.resolve_owner(&members, update.owner.as_ref().unwrap_or(by));
        let is_explicit = update.owner.is_some();
        let owner = if is_explicit { Some(owner?) } else { owner.ok() };
        let mut previous_owner = None;
        let task = self.change(update.read_scope(*id), |draft| {
            let task = draft.task(*id)?;
            previous_owner.clone_from(&task.owner);
            let is_claim = !is_explicit && !by.is_lead();
            if let Some(other) = previous_owner
                .clone()
                .filter(|previous_owner| is_claim && owner.as_ref() != Some(previous_owner))
            {
                return Err(Error::TaskClaimed { id: *id, owner: other });
            }
            let owner = owner.as_ref().filter(|_| is_explicit || previous_owner.is_none());
            if owner.is_none() && previous_owner.is_none() {
                return Err(self.resolve_owner(&members, by).err().unwrap_or_else(|| self.no_such_task(*id)));
            }
            apply_checked_update(draft, *id, &update, owner)
        })?;
        if task.owner != previous_owner {
            self.notify_owner(&members, &task, by)?;
        }
        Ok(task)
    }

    /// Completes a task, whether or not it has failed before. Completing it again is not an error.
    pub fn complete(&self, id: &TaskId, by: &MemberName) -> Result<Task, Error> {
        self.update(id, TaskUpdate::with_status(TaskStatus::Completed), by)
    }

    /// Releases a task: the task becomes pending, without an owner and without a failure. If the
    /// task was in progress, the number of attempts increases ([`Task::attempts`]).
    pub fn release(&self, id: &TaskId, by: &MemberName) -> Result<Task, Error> {
        self.update(id, TaskUpdate::with_status(TaskStatus::Pending), by)
    }

    /// Records why the work on a task failed. The task stays in progress and keeps its owner, so
    /// that no member claims it again.
    pub fn fail(&self, id: &TaskId, failure: &str) -> Result<Task, Error> {
        let metadata = Map::from_iter([("failure".to_owned(), Value::from(failure))]);
        let update = TaskUpdate { metadata: Some(metadata), ..TaskUpdate::default() };
        self.change(ReadScope::Task(*id), |draft| apply_update(draft, *id, &update, None))
    }

    /// Records that teamd could not start `member`, who was to do this task. The task becomes a
    /// failed task in progress, with the reason `failure` and the owner `member`. The team has no
    /// such member now. Nothing changes if the task is no longer pending.
    ///
    /// # Errors
    /// `NoSuchTask`; `TaskBlocked` if the task has open blockers; errors of the files.
    pub fn fail_start(&self, id: &TaskId, member: &MemberName, failure: &str) -> Result<(), Error> {
        let metadata = Map::from_iter([("failure".to_owned(), Value::from(failure))]);
        let update =
            TaskUpdate { metadata: Some(metadata), ..TaskUpdate::with_status(TaskStatus::InProgress) };
        self.change(update.read_scope(*id), |draft| match draft.task(*id)?.status {
            TaskStatus::Pending => apply_update(draft, *id, &update, Some(member)).map(drop),
            _ => Ok(()),
        })
    }

    /// Deletes a task and all dependencies on it. Its id is not used again. Returns the task as it
    /// was, but with the status deleted.
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

/// Applies an update whose texts come from a member or a person.
fn apply_checked_update(
    draft: &mut TaskTransaction,
    id: TaskId,
    update: &TaskUpdate,
    owner: Option<&MemberName>,
) -> Result<Task, Error> {
    let task = apply_update(draft, id, update, owner)?;
    update.check_text_lengths(&task)?;
    Ok(task)
}

/// Applies an update to a transaction. `owner` is the owner to set, if any.
fn apply_update(
    draft: &mut TaskTransaction,
    id: TaskId,
    update: &TaskUpdate,
    owner: Option<&MemberName>,
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
    update.remove_blocked_by.iter().try_for_each(|blocker| draft.unlink(*blocker, id))?;
    update.add_blocks.iter().try_for_each(|blocked| draft.link(id, *blocked))?;
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

fn set_status(draft: &mut TaskTransaction, id: TaskId, new_status: &TaskStatus) -> Result<(), Error> {
    use TaskStatus::{Completed, InProgress, Pending};
    let task = draft.task(id)?.clone();
    match (&task.status, new_status) {
        (Pending | InProgress | Completed, InProgress) => check_unblocked(draft, &task)?,
        (Pending | InProgress, Pending | Completed) | (Completed, Completed) => {}
        (from, new_status) => {
            return Err(Error::InvalidTransition { id, from: from.to_string(), to: new_status.to_string() });
        }
    }
    if *new_status == Pending {
        draft.set(id, &[("owner", None)])?;
    }
    if (&task.status, new_status) == (&InProgress, &Pending) {
        let attempts = Map::from_iter([("attempts".to_owned(), Value::from(task.attempts() + 1))]);
        draft.edit_text(id, |text| with_metadata(text, &attempts))?;
    }
    clear_failure(draft, id)?;
    if task.status == *new_status {
        return Ok(());
    }
    draft.set(id, &[("status", Some(Value::from(new_status.as_str())))])
}
