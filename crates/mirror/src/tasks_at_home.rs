//! Tasks at the home: sends them to the annex, and decides about changes that were made there.

use crate::created_tasks::CreationProgress;
use crate::json_fields::{Fields, fingerprint};
use crate::team_mirror::TeamMirror;
use protocol::annex_link::{ItemPayload, TaskChange};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::member_task_and_request_ids::TaskId;
use protocol::task::Task;
use std::collections::BTreeSet;
use store::{Error, RewriteRules};

impl TeamMirror {
    /// The task for the annex. `None` if this state of the task was sent last.
    pub(crate) fn task_for_annex(&mut self, id: TaskId) -> Result<Option<ItemPayload>, Error> {
        let task = self.read_task(id)?;
        if self.sent_tasks.get(&id).copied() == task.as_ref().map(fingerprint) {
            return Ok(None);
        }
        self.note_sent(id, task.as_ref());
        Ok(Some(ItemPayload::Task { team: self.name(), id, task }))
    }

    /// The ids of the tasks that are mirrored.
    pub(crate) fn ids_of_mirrored_tasks(&self) -> Result<BTreeSet<TaskId>, Error> {
        let tasks = self.team.tasks().list()?;
        Ok(tasks.into_iter().filter(|task| !task.is_internal()).map(|task| task.id).collect())
    }

    /// Applies a task change from the annex, except for parts that conflict with changes at the
    /// home. Returns the answer, which is recorded before it is sent.
    pub(crate) fn decide_change(&mut self, id: TaskId, change: &TaskChange) -> Result<ItemPayload, Error> {
        let error = match change {
            TaskChange::Create { task } => self.create_once(id, change, task)?,
            TaskChange::Edit { .. } | TaskChange::Delete => {
                self.make_change(id, change)?.map(|conflict| conflict.into_error(id))
            }
        };
        let task = self.read_task(id)?;
        self.note_sent(id, task.as_ref());
        let change = change.clone();
        let answer = ItemPayload::TaskChangeAnswer { team: self.name(), id, change, task, error };
        self.stored_answers.add(&answer)?;
        Ok(answer)
    }

    /// Creates a task of the annex, unless an earlier call has created it. If the annex's id is
    /// taken, the task gets another id. The returned error says so, and the annex gets the task
    /// under its new id.
    pub(crate) fn create_once(
        &mut self,
        id: TaskId,
        change: &TaskChange,
        task: &Fields,
    ) -> Result<Option<ErrorReport>, Error> {
        let begun = match self.created_tasks.progress(id, task) {
            Some(CreationProgress::Done { home_id }) => return Ok(other_id_error(id, home_id)),
            Some(CreationProgress::Begun { last_number }) => self.find_created(task, last_number)?,
            None => self.begin_creation(id, task).map(|()| None)?,
        };
        let home_id = match begun {
            Some(home_id) => home_id,
            None => match self.make_change(id, change)? {
                None => id,
                Some(Conflict::Field(_)) => self.team.tasks().create_from_fields(task)?.id,
                Some(Conflict::Blocked(error)) => return Ok(Some(error)),
            },
        };
        self.created_tasks.note(id, task, CreationProgress::Done { home_id })?;
        Ok(other_id_error(id, home_id))
    }

    /// Records that the creation of a task begins.
    fn begin_creation(&mut self, id: TaskId, task: &Fields) -> Result<(), Error> {
        let tasks = self.team.tasks().list()?;
        let is_free = tasks.iter().all(|other| other.id != id);
        let last = tasks.iter().map(|other| other.id.number()).max().unwrap_or(0);
        let last_number = if is_free { last.min(id.number().saturating_sub(1)) } else { last };
        self.created_tasks.note(id, task, CreationProgress::Begun { last_number })
    }

    /// Finds a task whose creation was begun. It may have been changed since then.
    fn find_created(&self, task: &Fields, last_number: u32) -> Result<Option<TaskId>, Error> {
        let is_created = |other: &Task| {
            let fields = other.to_fields();
            let is_equal = |key: &str| fields.get(key) == task.get(key);
            other.id.number() > last_number && is_equal("subject") && is_equal("description")
        };
        Ok(self.team.tasks().list()?.into_iter().find(is_created).map(|other| other.id))
    }

    /// Makes a change, or returns why it can't be made.
    fn make_change(&self, id: TaskId, change: &TaskChange) -> Result<Option<Conflict>, Error> {
        let mut field = None;
        let result = self.team.tasks().rewrite(&id, RewriteRules::Checked, |task| {
            let applied = change.apply(task);
            field = applied.conflict;
            applied.task
        });
        match result {
            Ok(_) => Ok(field.map(Conflict::Field)),
            Err(Error::AlreadyExists { .. }) => Ok(Some(Conflict::Field("id".to_owned()))),
            Err(error @ Error::TaskBlocked { .. }) => Ok(Some(Conflict::Blocked(error.into()))),
            Err(error) => Err(error),
        }
    }

    /// The fields of a task. `None` if it does not exist, or is internal. Internal tasks are not
    /// mirrored.
    pub(crate) fn read_task(&self, id: TaskId) -> Result<Option<Fields>, Error> {
        match self.team.tasks().get(&id) {
            Ok(task) => Ok((!task.is_internal()).then(|| task.to_fields())),
            Err(Error::NoSuchTask { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn note_sent(&mut self, id: TaskId, task: Option<&Fields>) {
        match task {
            Some(task) => drop(self.sent_tasks.insert(id, fingerprint(task))),
            None => drop(self.sent_tasks.remove(&id)),
        }
    }
}

/// What the annex is told if its new task has another id here.
fn other_id_error(annex_id: TaskId, home_id: TaskId) -> Option<ErrorReport> {
    let message =
        || format!("the new task {annex_id} is task {home_id} now, because its id was taken at the home");
    (home_id != annex_id).then(|| ErrorReport::new(ErrorKind::AlreadyExists, message()))
}

/// Why a change of the annex can't be made.
enum Conflict {
    /// The home has another value in this field.
    Field(String),
    Blocked(ErrorReport),
}

impl Conflict {
    fn into_error(self, id: TaskId) -> ErrorReport {
        match self {
            Conflict::Field(field) => refusal(id, &field),
            Conflict::Blocked(error) => error,
        }
    }
}

fn refusal(id: TaskId, field: &str) -> ErrorReport {
    let message = format!("cannot change task {id}: its field {field} was changed at the home first");
    ErrorReport::new(ErrorKind::AlreadyExists, message).with_help(format!("see it: teamctl task get {id}"))
}
