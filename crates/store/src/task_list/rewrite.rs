//! Replaces the content of a task file, for teams with members on several hosts.

use super::claim::check_unblocked;
use super::task_list_handle::{ReadScope, Tasks};
use super::transaction::TaskTransaction;
use crate::error::Error;
use crate::file_io::MAX_ATTEMPTS;
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::{Task, TaskStatus};
use serde_json::{Map, Value};

/// The fields of a task file.
type Fields = Map<String, Value>;

/// Which rules a new content must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewriteRules {
    /// A blocked task may not be started, and a new task needs an id that was never used.
    Checked,
    /// No rules, because the team's home has checked the content.
    Unchecked,
}

/// What `edit` has made of an existing task.
enum Rewritten {
    /// The task must still be deleted. For that, the caller must read the other tasks too.
    Unwanted,
    Kept,
}

impl Tasks {
    /// Replaces the fields of a task, or creates or deletes the task. `edit` gets the old fields,
    /// or `None` if the task does not exist. It returns the new fields, or `None` to delete the
    /// task. If another program changes the file meanwhile, `edit` is called again.
    ///
    /// # Errors
    /// With [`RewriteRules::Checked`]: `TaskBlocked`, and `AlreadyExists` for an id that was used
    /// before. `Contended` if other programs change the file too often. Errors of file access.
    pub fn rewrite(
        &self,
        id: &TaskId,
        rules: RewriteRules,
        mut edit: impl FnMut(Option<&Fields>) -> Option<Fields>,
    ) -> Result<(), Error> {
        for _ in 0..MAX_ATTEMPTS {
            match self.rewrite_existing(id, rules, &mut edit) {
                Ok(Rewritten::Kept) => return Ok(()),
                Ok(Rewritten::Unwanted) if self.delete_if_unwanted(id, &mut edit)? => return Ok(()),
                Ok(Rewritten::Unwanted) => continue,
                Err(Error::NoSuchTask { .. }) => {}
                Err(error) => return Err(error),
            }
            match edit(None) {
                None => return Ok(()),
                Some(task) if self.create_with_id(id, &task, rules)? => return Ok(()),
                // Another program has created the task in the meantime.
                Some(_) => {}
            }
        }
        Err(Error::Contended(self.path()))
    }

    fn rewrite_existing(
        &self,
        id: &TaskId,
        rules: RewriteRules,
        edit: &mut impl FnMut(Option<&Fields>) -> Option<Fields>,
    ) -> Result<Rewritten, Error> {
        self.change(ReadScope::TaskAndBlockers(*id), |draft| {
            let before = draft.open_main_task(*id)?;
            let fields = before.to_fields();
            match edit(Some(&fields)) {
                None => Ok(Rewritten::Unwanted),
                Some(new_fields) => {
                    set_fields(draft, *id, &fields, &new_fields)?;
                    let after = draft.task(*id)?;
                    let starts = after.status == TaskStatus::InProgress && before.status != after.status;
                    if starts && rules == RewriteRules::Checked {
                        check_unblocked(draft, after)?;
                    }
                    Ok(Rewritten::Kept)
                }
            }
        })
    }

    /// Deletes a task if `edit` still wants that. Returns false if it does not.
    fn delete_if_unwanted(
        &self,
        id: &TaskId,
        edit: &mut impl FnMut(Option<&Fields>) -> Option<Fields>,
    ) -> Result<bool, Error> {
        let deleted = self.change(ReadScope::List, |draft| {
            let task = draft.open_main_task(*id)?;
            if edit(Some(&task.to_fields())).is_some() {
                return Ok(false);
            }
            draft.remove(*id).map(|()| true)
        });
        match deleted {
            Err(Error::NoSuchTask { .. }) => Ok(true),
            result => result,
        }
    }
}

fn set_fields(draft: &mut TaskTransaction, id: TaskId, from: &Fields, to: &Fields) -> Result<(), Error> {
    let changed = to.iter().filter(|(key, value)| from.get(*key) != Some(*value));
    let changed = changed.map(|(key, value)| (key.as_str(), Some(value.clone())));
    let removed = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.as_str(), None));
    let fields: Vec<(&str, Option<Value>)> = changed.chain(removed).collect();
    draft.set(id, &fields)
}

/// The error for a new task whose id is not free.
pub(super) fn used_id_error(id: TaskId) -> Error {
    Error::AlreadyExists { what: format!("task {id}") }
}

/// Parses the fields of a task file.
pub(super) fn parse_fields(fields: &Fields) -> Result<Task, String> {
    let text = serde_json::to_string(fields).map_err(|error| error.to_string())?;
    Task::parse(&text).map_err(|error| error.to_string())
}
