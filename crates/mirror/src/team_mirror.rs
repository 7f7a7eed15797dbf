//! One end of the mirror of one team: what both ends have, and what waits for an answer.

use crate::created_tasks::{CreatedTasks, created_tasks_file};
use crate::json_fields::Fields;
use crate::known_messages::{KnownMessages, messages_file};
use crate::unanswered_task_changes::UnansweredTaskChanges;
use crate::unkept_answers::{UnkeptAnswers, answers_file};
use protocol::annex_link::TaskChange;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, InboxCursor, StateDir, Team};

/// One end of the mirror of one team.
#[derive(Debug)]
pub(crate) struct TeamMirror {
    pub(crate) team: Team,
    pub(crate) known_messages: KnownMessages,
    /// How far each inbox was compared, by its owner.
    pub(crate) cursors: BTreeMap<MemberName, InboxCursor>,
    /// At the annex: for each inbox of its members, the ids of messages that the home may still
    /// have as unread.
    pub(crate) unread: BTreeMap<MemberName, BTreeSet<String>>,
    /// The members that the annex runs.
    pub(crate) members: BTreeMap<MemberName, Fields>,
    /// At the annex: whether `members` was sent since the last comparison of all files.
    pub(crate) members_are_sent: bool,
    /// At the home: the config as it was sent last. `None` if it must be sent again.
    pub(crate) sent_config: Option<Fields>,
    /// At the home: the tasks as they were sent last.
    pub(crate) sent_tasks: BTreeMap<TaskId, Fields>,
    /// At the home: the answers to changes of tasks that the link does not keep yet.
    pub(crate) unkept_answers: UnkeptAnswers,
    /// At the home: the tasks that the annex has created.
    pub(crate) created_tasks: CreatedTasks,
    /// At the annex: the tasks as the home has them.
    pub(crate) tasks: BTreeMap<TaskId, MirroredTask>,
}

/// At the annex: a task as the home has it, and the changes that were proposed to the home.
#[derive(Debug, Default)]
pub(crate) struct MirroredTask {
    /// `None` if the home has no such task.
    pub(crate) at_home: Option<Fields>,
    pub(crate) changes: UnansweredTaskChanges,
}

/// A [`MirroredTask`] in its file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct StoredTask {
    at_home: Option<Fields>,
    /// The changes with the numbers of their items. A change without a number is sent again after a
    /// crash.
    changes: Vec<(Option<u64>, TaskChange)>,
    /// The number of the last item that is known to be kept.
    #[serde(default)]
    last_kept: u64,
    /// A task of the home that is being written here for the first time. It counts as `at_home` once
    /// the file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arriving: Option<Fields>,
}

impl TeamMirror {
    /// Opens the mirror of a team.
    ///
    /// # Errors
    ///
    /// If its state can't be read.
    pub(crate) fn open(team: Team, state: &StateDir) -> Result<TeamMirror, Error> {
        let known_messages = KnownMessages::open(state, team.name())?;
        let unkept_answers = UnkeptAnswers::open(state, team.name())?;
        let created_tasks = CreatedTasks::open(state, team.name())?;
        let tasks = read_tasks(state, &team)?;
        Ok(TeamMirror {
            team,
            known_messages,
            cursors: BTreeMap::new(),
            unread: BTreeMap::new(),
            members: BTreeMap::new(),
            members_are_sent: false,
            sent_config: None,
            sent_tasks: BTreeMap::new(),
            unkept_answers,
            created_tasks,
            tasks,
        })
    }

    pub(crate) fn name(&self) -> TeamName {
        self.team.name().clone()
    }

    /// Writes the record of a task, or removes the record if there is nothing in it.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn save_task(&mut self, state: &StateDir, id: TaskId) -> Result<(), Error> {
        let Some(task) = self.tasks.get(&id) else { return Ok(()) };
        if task.at_home.is_none() && task.changes.is_empty() {
            self.tasks.remove(&id);
            return state.remove(&task_file(self.team.name(), id));
        }
        StoredTask::new(task, None).write(state, self.team.name(), id)
    }

    /// Records a task of the home before it is written here for the first time. Otherwise, after a
    /// crash, it would be taken for a task that was created here.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn note_arriving(
        &mut self,
        state: &StateDir,
        id: TaskId,
        at_home: Option<&Fields>,
    ) -> Result<(), Error> {
        let task = self.tasks.entry(id).or_default();
        match (&task.at_home, at_home) {
            (None, Some(arriving)) => {
                StoredTask::new(task, Some(arriving.clone())).write(state, self.team.name(), id)
            }
            _ => Ok(()),
        }
    }
}

impl StoredTask {
    fn new(task: &MirroredTask, arriving: Option<Fields>) -> StoredTask {
        let (at_home, changes) = (task.at_home.clone(), task.changes.all());
        StoredTask { at_home, changes, last_kept: task.changes.last_kept(), arriving }
    }

    fn write(&self, state: &StateDir, team: &TeamName, id: TaskId) -> Result<(), Error> {
        state.replace(&task_file(team, id), &serde_json::to_vec(self).expect("fields have string keys"))
    }

    /// Ends an arrival that a crash has interrupted. A task that was created here has another subject,
    /// or is the one that arrives.
    fn end_arrival(mut self, state: &StateDir, team: &Team, id: TaskId) -> Result<StoredTask, Error> {
        let Some(arriving) = self.arriving.take() else { return Ok(self) };
        let has_arrived = match team.tasks().get(&id) {
            Ok(task) => task.to_fields().get("subject") == arriving.get("subject"),
            Err(Error::NoSuchTask { .. }) => false,
            Err(error) => return Err(error),
        };
        if has_arrived {
            self.at_home = Some(arriving);
        }
        self.write(state, team.name(), id)?;
        Ok(self)
    }
}

fn read_tasks(state: &StateDir, team: &Team) -> Result<BTreeMap<TaskId, MirroredTask>, Error> {
    let prefix = tasks_prefix(team.name());
    let mut tasks = BTreeMap::new();
    for file in state.names()? {
        let Some(id) = file.strip_prefix(&prefix).and_then(|id| TaskId::parse(id).ok()) else { continue };
        let bytes = state.read(&file)?.unwrap_or_default();
        let Ok(stored) = serde_json::from_slice::<StoredTask>(&bytes) else { continue };
        let StoredTask { at_home, changes, last_kept, .. } = stored.end_arrival(state, team, id)?;
        let changes = UnansweredTaskChanges::new(changes, last_kept);
        tasks.insert(id, MirroredTask { at_home, changes });
    }
    Ok(tasks)
}

fn tasks_prefix(team: &TeamName) -> String {
    format!("{team}.task-")
}

fn task_file(team: &TeamName, id: TaskId) -> String {
    format!("{}{id}", tasks_prefix(team))
}

/// Removes the files with the state of a team's mirror.
///
/// # Errors
///
/// `Io`.
pub(crate) fn remove_state(state: &StateDir, team: &TeamName) -> Result<(), Error> {
    state.remove(&messages_file(team))?;
    state.remove(&answers_file(team))?;
    state.remove(&created_tasks_file(team))?;
    let prefix = tasks_prefix(team);
    state.names()?.iter().filter(|file| file.starts_with(&prefix)).try_for_each(|file| state.remove(file))
}
