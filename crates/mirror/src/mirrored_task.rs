//! At the annex: one task of a mirror. It consists of the home's version of the task, and of the
//! changes that the annex has proposed to the home. Both are recorded in one file for each task.

use crate::json_fields::Fields;
use crate::unanswered_task_changes::UnansweredTaskChanges;
use protocol::annex_link::TaskChange;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::{Error, StateDir};

/// At the annex: a task as the home has it, and the changes that were proposed to the home.
#[derive(Debug, Default)]
pub(crate) struct MirroredTask {
    /// `None` if the home has no such task.
    pub(crate) at_home: Option<Fields>,
    pub(crate) changes: UnansweredTaskChanges,
    /// The home's version of a new task. It is recorded here before it is written to the task file.
    /// After a crash or an error, it becomes `at_home` if the task file has it.
    pub(crate) arriving: Option<Fields>,
    /// Whether the record has `at_home`.
    pub(crate) is_recorded: bool,
}

/// A [`MirroredTask`] as its record has it.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TaskRecord {
    at_home: Option<Fields>,
    /// Each change with the number of the item that carries it to the home. The number is `None`
    /// until the link keeps this item. After a crash, a change without a number is sent again.
    changes: Vec<(Option<u64>, TaskChange)>,
    /// The number of the last item that is known to be kept.
    #[serde(default)]
    last_kept: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arriving: Option<Fields>,
}

impl MirroredTask {
    /// Whether the task was created here and the home has not confirmed its id yet.
    pub(crate) fn has_uncertain_id(&self) -> bool {
        self.at_home.is_none() && self.changes.created().is_some()
    }

    /// The task as the mirror should have it, without changes that were not sent yet.
    pub(crate) fn expected_here(&self) -> Option<Fields> {
        self.changes.apply(self.at_home.as_ref())
    }

    /// After a crash or an error: whether the task file already contains the home's task
    /// `arriving`. `here` has the fields of the task file. If the file has the same subject as
    /// `arriving`, it contains the home's task. But if a program on this host created a task with
    /// that subject, it is not clear whose task the file contains. This function then returns
    /// false, and the home sends its task again.
    pub(crate) fn has_arrived(&self, here: &Fields, arriving: &Fields) -> bool {
        let subject = here.get("subject");
        let is_created_here = self.changes.created().is_some_and(|own| own.get("subject") == subject);
        arriving.get("subject") == subject && !is_created_here
    }

    /// Writes the record, or removes it if there is nothing in it.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn write_record(
        &mut self,
        state: &StateDir,
        team: &TeamName,
        id: TaskId,
    ) -> Result<(), Error> {
        let name = record_name(team, id);
        if self.is_empty() {
            return state.remove(&name);
        }
        let record = TaskRecord {
            at_home: self.at_home.clone(),
            changes: self.changes.all(),
            last_kept: self.changes.last_kept(),
            arriving: self.arriving.clone(),
        };
        state.replace(&name, &serde_json::to_vec(&record).expect("fields have string keys"))?;
        self.is_recorded = true;
        Ok(())
    }

    /// Whether the record would be empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.at_home.is_none() && self.changes.is_empty() && self.arriving.is_none()
    }
}

/// Reads the records of a team's tasks. Records that can't be parsed are skipped.
///
/// # Errors
///
/// `Io`.
pub(crate) fn read_task_records(
    state: &StateDir,
    team: &TeamName,
) -> Result<BTreeMap<TaskId, MirroredTask>, Error> {
    let prefix = record_prefix(team);
    let mut tasks = BTreeMap::new();
    for name in state.names()? {
        let Some(id) = name.strip_prefix(&prefix).and_then(|id| TaskId::parse(id).ok()) else { continue };
        let bytes = state.read(&name)?.unwrap_or_default();
        let Ok(record) = serde_json::from_slice::<TaskRecord>(&bytes) else { continue };
        let TaskRecord { at_home, changes, last_kept, arriving } = record;
        let changes = UnansweredTaskChanges::new(changes, last_kept);
        tasks.insert(id, MirroredTask { at_home, changes, arriving, is_recorded: true });
    }
    Ok(tasks)
}

/// Removes the records of a team's tasks.
///
/// # Errors
///
/// `Io`.
pub(crate) fn remove_task_records(state: &StateDir, team: &TeamName) -> Result<(), Error> {
    let prefix = record_prefix(team);
    state.names()?.iter().filter(|name| name.starts_with(&prefix)).try_for_each(|name| state.remove(name))
}

fn record_prefix(team: &TeamName) -> String {
    format!("{team}.task-")
}

fn record_name(team: &TeamName, id: TaskId) -> String {
    format!("{}{id}", record_prefix(team))
}
