//! Tasks at the annex.
//!
//! Invariant: a task in the mirror is the home's version of the task, to which changes of the annex
//! are applied: first the changes that were sent but not answered, then the changes that were not
//! sent yet (`random_lives_lose_and_double_nothing`).

use crate::json_fields::Fields;
use crate::mirrored_task::MirroredTask;
use crate::team_mirror::TeamMirror;
use protocol::annex_link::{ItemPayload, TaskChange};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::Message;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use serde_json::Value;
use std::cell::Cell;
use std::collections::BTreeSet;
use store::{Error, RewriteRules, StateDir, message_id};

/// Whether a task was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    Yes,
    /// A task was created here meanwhile.
    No,
}

impl TeamMirror {
    /// Returns an item that sends the home the changes of a task since the last sent change. `None`
    /// if there are no changes, or if the task was created here and the home has not confirmed its
    /// id yet.
    ///
    /// The creation of a task is recorded before it is sent. So after a crash the same creation is
    /// sent again, and not a second one.
    pub(crate) fn change_for_home(
        &mut self,
        state: &StateDir,
        id: TaskId,
    ) -> Result<Option<ItemPayload>, Error> {
        let here = self.read_task(id)?;
        // A mirror that is being deleted loses its files. A missing file is then no change.
        if here.is_none() && !self.team.is_complete()? {
            return Ok(None);
        }
        self.end_arrival(state, id, here.as_ref())?;
        let task = self.tasks.entry(id).or_default();
        if task.has_uncertain_id() {
            return Ok(None);
        }
        let expected = task.expected_here();
        let Some(change) = TaskChange::between(expected.as_ref(), here.as_ref()) else { return Ok(None) };
        task.changes.push(change.clone());
        if matches!(change, TaskChange::Create { .. })
            && let Err(error) = self.save_task(state, id)
        {
            self.tasks.entry(id).or_default().changes.remove_last();
            return Err(error);
        }
        Ok(Some(self.change_item(id, change)))
    }

    /// The ids of all tasks that the home may have, or that are here.
    pub(crate) fn ids_of_all_tasks(&self) -> Result<BTreeSet<TaskId>, Error> {
        let here = self.team.tasks().list()?.into_iter().map(|task| task.id);
        Ok(here.chain(self.tasks.keys().copied()).collect())
    }

    /// The changes that the link may have lost in a crash.
    pub(crate) fn changes_to_send_again(&self) -> Vec<ItemPayload> {
        let tasks = self.tasks.iter();
        let changes = tasks.flat_map(|(id, task)| task.changes.not_kept().map(move |change| (*id, change)));
        changes.map(|(id, change)| self.change_item(id, change.clone())).collect()
    }

    fn change_item(&self, id: TaskId, change: TaskChange) -> ItemPayload {
        ItemPayload::TaskChange { team: self.name(), created_at: self.created_at, id, change }
    }

    /// Replaces a task by the home's version, and applies the changes again that the home has not
    /// answered yet. The caller has sent all changes of the task before, because the home's task
    /// may replace a task that was created here.
    pub(crate) fn store_task(
        &mut self,
        state: &StateDir,
        id: TaskId,
        at_home: Option<&Fields>,
    ) -> Result<Replaced, Error> {
        let before = self.tasks.entry(id).or_default();
        let is_known = before.is_recorded && before.at_home.is_some() && before.at_home.as_ref() == at_home;
        if is_known && before.changes.is_empty() {
            return Ok(Replaced::Yes);
        }
        let changes = before.changes.clone();
        let after = MirroredTask { at_home: at_home.cloned(), changes, ..MirroredTask::default() };
        let (old, new) = (before.expected_here(), after.expected_here());
        let is_uncertain = before.has_uncertain_id();
        self.begin_arrival(state, id, at_home)?;
        // If `is_uncertain`, the task was created here, and the home has another task with the same
        // id. So the task that was created here gets a new id at the home. Later changes of that
        // task are dropped.
        let replaced = match is_uncertain && new != old {
            true => self.write_task(id, |_| new.clone()).map(|()| Replaced::Yes)?,
            false => self.replace_task(id, old.as_ref(), new.as_ref())?,
        };
        match replaced {
            Replaced::Yes => drop(self.tasks.insert(id, after)),
            Replaced::No => self.tasks.entry(id).or_default().arriving = None,
        }
        self.save_task(state, id)?;
        Ok(replaced)
    }

    /// The home's tasks that are not in `ids`. The home has deleted them.
    pub(crate) fn tasks_deleted_at_home(&self, ids: &[TaskId]) -> Vec<TaskId> {
        let ids: BTreeSet<&TaskId> = ids.iter().collect();
        let is_gone = |(id, task): &(&TaskId, &MirroredTask)| !ids.contains(id) && task.at_home.is_some();
        self.tasks.iter().filter(is_gone).map(|(id, _)| *id).collect()
    }

    /// Stores the home's answer to a change. The answer contains the home's version of the task,
    /// which replaces the task here. If the home reports an error, the author of the change gets it
    /// as a message.
    pub(crate) fn store_answer(
        &mut self,
        state: &StateDir,
        (id, change): (TaskId, &TaskChange),
        (at_home, error): (Option<&Fields>, Option<&ErrorReport>),
    ) -> Result<(), Error> {
        let here = self.read_task(id)?;
        self.end_arrival(state, id, here.as_ref())?;
        let before = self.tasks.entry(id).or_default();
        let changes = before.changes.clone();
        let mut after = MirroredTask { at_home: at_home.cloned(), changes, ..MirroredTask::default() };
        after.changes.remove_if_oldest(change);
        let (old, new) = (before.expected_here(), after.expected_here());
        let is_uncertain = before.has_uncertain_id();
        self.begin_arrival(state, id, at_home)?;
        // If `is_uncertain` is set and the home reports an error, the home has another task with
        // the id of the task that was created here. Later changes here were meant for the created
        // task, so they are dropped.
        match is_uncertain && error.is_some() {
            true => self.write_task(id, |_| new.clone())?,
            false => drop(self.replace_task(id, old.as_ref(), new.as_ref())?),
        }
        self.tasks.insert(id, after);
        self.save_task(state, id)?;
        error.map_or(Ok(()), |error| self.tell_author(change, error))
    }

    /// Records a task of the home before the task's file is first written here. Without the record,
    /// a crash would make the task look like one that was created here.
    fn begin_arrival(&mut self, state: &StateDir, id: TaskId, at_home: Option<&Fields>) -> Result<(), Error> {
        let task = self.tasks.entry(id).or_default();
        match (&task.at_home, at_home) {
            (None, Some(arriving)) => {
                task.arriving = Some(arriving.clone());
                self.save_task(state, id)
            }
            _ => Ok(()),
        }
    }

    /// Ends an arrival that a crash or an error has interrupted. `here` is the task in its file.
    fn end_arrival(&mut self, state: &StateDir, id: TaskId, here: Option<&Fields>) -> Result<(), Error> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(()) };
        let Some(arriving) = task.arriving.take() else { return Ok(()) };
        if here.is_some_and(|here| task.has_arrived(here, &arriving)) {
            task.at_home = Some(arriving);
        }
        task.is_recorded = false;
        self.save_task(state, id)
    }

    /// Changes the file of a task from `before` to `after`. If programs here have changed the file
    /// since `before`, their changes are kept. If `before` is `None` but a program has created a
    /// task with this id, the file stays as it is.
    fn replace_task(
        &self,
        id: TaskId,
        before: Option<&Fields>,
        after: Option<&Fields>,
    ) -> Result<Replaced, Error> {
        let is_new = Cell::new(false);
        self.write_task(id, |here| {
            let unsent = TaskChange::between(before, here.filter(|here| !is_internal(here)));
            is_new.set(after.is_some() && matches!(unsent, Some(TaskChange::Create { .. })));
            match unsent {
                _ if is_new.get() => here.cloned(),
                Some(change) => change.apply(after).task,
                None => after.cloned(),
            }
        })?;
        Ok(if is_new.get() { Replaced::No } else { Replaced::Yes })
    }

    fn write_task(&self, id: TaskId, edit: impl Fn(Option<&Fields>) -> Option<Fields>) -> Result<(), Error> {
        self.team.tasks().rewrite(&id, RewriteRules::Unchecked, edit)
    }

    /// Sends the home's error about a change as a message to the author of the change. The author
    /// is the new owner, if the change names one. If the author is not known, all members here get
    /// the message.
    ///
    /// Members for whom teamd confirms claims get no message. They learn the home's decision when
    /// they claim the task.
    fn tell_author(&self, change: &TaskChange, error: &ErrorReport) -> Result<(), Error> {
        let author = change.new_value("owner").and_then(Value::as_str).map(MemberName::new_unchecked);
        let is_author = |name: &&MemberName| {
            author.as_ref().is_none_or(|author| author == *name) && !self.team.confirms_claims(name)
        };
        let message = Message::new(&MemberName::lead(), error.message.clone(), store::now());
        for name in self.members.keys().filter(is_author) {
            // Two equal messages of the same millisecond have the same id, and the home would store
            // only one. So a message that the inbox has already is not added again.
            if !self.message_ids(name)?.contains(&message_id(&message)) {
                self.team.inbox(name).append(&message)?;
            }
        }
        Ok(())
    }
}

fn is_internal(task: &Fields) -> bool {
    task.get("metadata").and_then(|metadata| metadata.get("_internal")) == Some(&true.into())
}
