//! Tasks at the annex.
//!
//! Invariant: a task in the mirror is the home's task, with the changes on top that the home has not
//! answered yet, and then the changes that were not sent yet (`random_lives_lose_and_double_nothing`).

use crate::damaged_files::unless_damaged;
use crate::json_fields::Fields;
use crate::team_mirror::{MirroredTask, TeamMirror};
use protocol::annex_link::{ItemPayload, TaskChange};
use protocol::error_kind_and_report::ErrorReport;
use protocol::inbox_file::Message;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;
use serde_json::Value;
use std::collections::BTreeSet;
use store::{Error, RewriteRules, StateDir, message_id};

impl TeamMirror {
    /// The change that was made here since the last one that was sent. While it is not known whether the
    /// home gives a new task its id, changes of this task are not sent.
    pub(crate) fn change_for_home(&mut self, id: TaskId) -> Result<Option<ItemPayload>, Error> {
        let here = self.read_task(id)?;
        // A mirror that is being deleted loses its files, which is no change.
        if here.is_none() && !self.team.is_complete()? {
            return Ok(None);
        }
        let task = self.tasks.entry(id).or_default();
        if task.has_uncertain_id() {
            return Ok(None);
        }
        let expected = task.expected_here();
        let Some(change) = TaskChange::between(expected.as_ref(), here.as_ref()) else { return Ok(None) };
        task.changes.push(change.clone());
        Ok(Some(ItemPayload::TaskChange { team: self.name(), id, change }))
    }

    /// The changes of all tasks that were not sent yet.
    pub(crate) fn all_changes_for_home(&mut self) -> Result<Vec<ItemPayload>, Error> {
        let mut ids: BTreeSet<TaskId> = self.team.tasks().list()?.iter().map(|task| task.id).collect();
        ids.extend(self.tasks.keys());
        let changes = ids.into_iter().map(|id| unless_damaged(self.change_for_home(id)));
        let items = changes.collect::<Result<Vec<_>, _>>()?;
        Ok(items.into_iter().flatten().collect())
    }

    /// The changes that the link may have lost in a crash.
    pub(crate) fn changes_to_send_again(&self) -> Vec<ItemPayload> {
        let tasks = self.tasks.iter();
        let changes = tasks.flat_map(|(id, task)| task.changes.not_kept().map(move |change| (*id, change)));
        changes
            .map(|(id, change)| ItemPayload::TaskChange { team: self.name(), id, change: change.clone() })
            .collect()
    }

    /// Stores a task of the home, under the changes without an answer. Returns a change that was made here
    /// and not sent yet. It is recorded first, because the task of the home may replace a task that was
    /// created here.
    pub(crate) fn store_task(
        &mut self,
        state: &StateDir,
        id: TaskId,
        at_home: Option<&Fields>,
    ) -> Result<Option<ItemPayload>, Error> {
        let before = self.tasks.entry(id).or_default();
        if before.at_home.is_some() && before.at_home.as_ref() == at_home && before.changes.is_empty() {
            return Ok(None);
        }
        let unsent = self.change_for_home(id)?;
        self.save_task(state, id)?;
        let before = self.tasks.entry(id).or_default();
        let after = MirroredTask { at_home: at_home.cloned(), changes: before.changes.clone() };
        let (old, new) = (before.expected_here(), after.expected_here());
        // What was changed since then was meant for the new task, which gets another id.
        match before.has_uncertain_id() && new != old {
            true => self.write_task(id, |_| new.clone())?,
            false => self.replace_task(id, old.as_ref(), new.as_ref())?,
        }
        self.tasks.insert(id, after);
        self.save_task(state, id)?;
        Ok(unsent)
    }

    /// Removes the tasks of the home that it has no more. Returns changes that were not sent yet.
    pub(crate) fn remove_other_tasks(
        &mut self,
        state: &StateDir,
        ids: &[TaskId],
    ) -> Result<Vec<ItemPayload>, Error> {
        let ids: BTreeSet<&TaskId> = ids.iter().collect();
        let is_gone = |(id, task): &(&TaskId, &MirroredTask)| !ids.contains(id) && task.at_home.is_some();
        let gone: Vec<TaskId> = self.tasks.iter().filter(is_gone).map(|(id, _)| *id).collect();
        let unsent = gone.into_iter().map(|id| self.store_task(state, id, None));
        Ok(unsent.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// Stores the task of the home after it has made or refused a change.
    pub(crate) fn store_answer(
        &mut self,
        state: &StateDir,
        (id, change): (TaskId, &TaskChange),
        (at_home, error): (Option<&Fields>, Option<&ErrorReport>),
    ) -> Result<(), Error> {
        let before = self.tasks.entry(id).or_default();
        let mut after = MirroredTask { at_home: at_home.cloned(), changes: before.changes.clone() };
        after.changes.remove(change);
        let (old, new) = (before.expected_here(), after.expected_here());
        // What was changed since then was meant for the new task, which has another id now.
        match before.has_uncertain_id() && error.is_some() {
            true => self.write_task(id, |_| new.clone())?,
            false => self.replace_task(id, old.as_ref(), new.as_ref())?,
        }
        error.map_or(Ok(()), |error| self.tell_author(change, error))?;
        self.tasks.insert(id, after);
        self.save_task(state, id)
    }

    /// Replaces the state `before` of a task by `after`, and keeps what was changed here and not sent
    /// yet.
    fn replace_task(&self, id: TaskId, before: Option<&Fields>, after: Option<&Fields>) -> Result<(), Error> {
        self.write_task(id, |here| {
            let here = here.filter(|here| !is_internal(here));
            let unsent = TaskChange::between(before, here);
            unsent.map_or_else(|| after.cloned(), |change| change.apply(after).task)
        })
    }

    fn write_task(&self, id: TaskId, edit: impl Fn(Option<&Fields>) -> Option<Fields>) -> Result<(), Error> {
        self.team.tasks().rewrite(&id, RewriteRules::Unchecked, edit)
    }

    /// Tells a member that the home did not make its change. If the change names no owner, tells all
    /// members here. A member whose tasks teamd gives it is not told, because it has not begun.
    fn tell_author(&self, change: &TaskChange, error: &ErrorReport) -> Result<(), Error> {
        let author = change.new_value("owner").and_then(Value::as_str).map(MemberName::new_unchecked);
        let is_author = |name: &&MemberName| {
            author.as_ref().is_none_or(|author| author == *name) && !self.team.confirms_claims(name)
        };
        let message = Message::new(&MemberName::lead(), error.message.clone(), store::now());
        for name in self.members.keys().filter(is_author) {
            // Two refusals within a millisecond would be one message to the home.
            if !self.has_message(name, &message_id(&message))? {
                self.team.inbox(name).append(&message)?;
            }
        }
        Ok(())
    }
}

impl MirroredTask {
    /// Whether the task was created here, and it is not known whether the home gives it this id.
    fn has_uncertain_id(&self) -> bool {
        self.at_home.is_none() && self.changes.has_creation()
    }

    /// The task as it should be in the mirror, apart from changes that were not sent yet.
    fn expected_here(&self) -> Option<Fields> {
        self.changes.apply(self.at_home.as_ref())
    }
}

fn is_internal(task: &Fields) -> bool {
    task.get("metadata").and_then(|metadata| metadata.get("_internal")) == Some(&true.into())
}
