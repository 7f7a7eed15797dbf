//! Tasks at the home: sends them to the annex, and decides about changes that were made there.

use crate::damaged_files::unless_damaged;
use crate::json_fields::Fields;
use crate::team_mirror::TeamMirror;
use protocol::annex_link::{ItemPayload, TaskChange};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use store::{Error, RewriteRules};

impl TeamMirror {
    /// The task for the annex. `None` if this state of the task was sent last.
    pub(crate) fn task_for_annex(&mut self, id: TaskId) -> Result<Option<ItemPayload>, Error> {
        let task = self.read_task(id)?;
        if self.sent_tasks.get(&id) == task.as_ref() {
            return Ok(None);
        }
        self.note_sent(id, task.as_ref());
        Ok(Some(ItemPayload::Task { team: self.name(), id, task }))
    }

    /// The tasks that differ from those sent last, and the ids of all tasks.
    pub(crate) fn new_tasks_for_annex(&mut self) -> Result<Vec<ItemPayload>, Error> {
        let tasks = self.team.tasks().list()?;
        let ids: Vec<TaskId> = tasks.iter().filter(|task| !task.is_internal()).map(|task| task.id).collect();
        let tasks = ids.iter().map(|id| unless_damaged(self.task_for_annex(*id)));
        let items = tasks.collect::<Result<Vec<_>, _>>()?;
        let ids = ItemPayload::TaskIds { team: self.name(), ids };
        Ok(items.into_iter().flatten().chain([ids]).collect())
    }

    /// Makes a change of the annex, except for parts that conflict with changes at the home.
    /// Returns the answer, which is recorded before it is sent.
    pub(crate) fn decide_change(&mut self, id: TaskId, change: &TaskChange) -> Result<ItemPayload, Error> {
        let tasks = self.team.tasks();
        let mut conflict = None;
        let result = tasks.rewrite(&id, RewriteRules::Checked, |task| {
            let applied = change.apply(task);
            conflict = applied.conflict;
            applied.task
        });
        let error = match result {
            Ok(_) => conflict.map(|field| self.create_or_refuse(id, change, &field)).transpose()?,
            Err(Error::AlreadyExists { .. }) => Some(self.create_or_refuse(id, change, "id")?),
            Err(error @ Error::TaskBlocked { .. }) => Some(ErrorReport::from(error)),
            Err(error) => return Err(error),
        };
        let task = self.read_task(id)?;
        self.note_sent(id, task.as_ref());
        let change = change.clone();
        let answer = ItemPayload::TaskChangeAnswer { team: self.name(), id, change, task, error };
        self.unsent_answers.add(&answer)?;
        Ok(answer)
    }

    /// Handles a conflict. If the id of a new task is taken, creates the task under another id. The
    /// annex gets it like any other task. Refuses every other change.
    fn create_or_refuse(&self, id: TaskId, change: &TaskChange, field: &str) -> Result<ErrorReport, Error> {
        let TaskChange::Create { task } = change else { return Ok(refusal(id, field)) };
        let new_id = self.team.tasks().create_from_fields(task)?.id;
        let message = format!("the new task {id} is task {new_id} now, because its id was taken at the home");
        Ok(ErrorReport::new(ErrorKind::AlreadyExists, message))
    }

    /// The fields of a task. `None` if it does not exist, or is internal and therefore not mirrored.
    pub(crate) fn read_task(&self, id: TaskId) -> Result<Option<Fields>, Error> {
        match self.team.tasks().get(&id) {
            Ok(task) => Ok((!task.is_internal()).then(|| task.to_fields())),
            Err(Error::NoSuchTask { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn note_sent(&mut self, id: TaskId, task: Option<&Fields>) {
        match task {
            Some(task) => drop(self.sent_tasks.insert(id, task.clone())),
            None => drop(self.sent_tasks.remove(&id)),
        }
    }
}

fn refusal(id: TaskId, field: &str) -> ErrorReport {
    let message =
        format!("cannot change task {id}: somebody has changed its field {field} at the home first");
    ErrorReport::new(ErrorKind::AlreadyExists, message).with_help(format!("see it: teamctl task get {id}"))
}
