//! One end of the mirror of one team: what both ends have, and what waits for an answer.

use crate::config_changes::{HomeConfig, SentConfig};
use crate::created_tasks::{CreatedTasks, created_tasks_file};
use crate::home_budget_file::home_budget_file;
use crate::json_fields::Fields;
use crate::known_messages::{KnownMessages, messages_file};
use crate::mirrored_task::{MirroredTask, read_task_records, remove_task_records};
use crate::received_events::{ReceivedEvents, received_events_file};
use crate::sent_events::{SentEvents, sent_events_file};
use crate::stored_answers_to_task_changes::{StoredTaskAnswers, answers_file};
use crate::unread_messages::UnreadMessages;
use protocol::annex_link::HomeBudget;
use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use store::{Error, InboxCursor, StateDir, Team};

/// One end of the mirror of one team.
#[derive(Debug)]
pub(crate) struct TeamMirror {
    pub(crate) team: Team,
    /// When the team was created at its home.
    pub(crate) created_at: u64,
    pub(crate) known_messages: KnownMessages,
    /// How far each inbox was compared, by its owner.
    pub(crate) cursors: BTreeMap<MemberName, InboxCursor>,
    /// At the annex: for each inbox of its members, the messages that were unread at the last
    /// comparison. The next comparison finds out which of them were read since, and tells the home.
    pub(crate) unread: BTreeMap<MemberName, UnreadMessages>,
    /// New members whose inboxes have not been compared yet with what the other host has. After an
    /// error, a later call compares these inboxes.
    pub(crate) uncompared: BTreeSet<MemberName>,
    /// The members that the annex runs.
    pub(crate) members: BTreeMap<MemberName, Fields>,
    /// At the annex: whether `members` was sent since the last comparison of all files.
    pub(crate) members_are_sent: bool,
    /// At the home: the config that was sent last. `None` if the whole config must be sent.
    pub(crate) sent_config: Option<SentConfig>,
    /// At the home: the budget that was sent last.
    pub(crate) sent_budget: Option<HomeBudget>,
    /// At the annex: the config that has arrived last. `None` after a start.
    pub(crate) home_config: Option<HomeConfig>,
    /// At the home: the fingerprints of the tasks as they were sent last.
    pub(crate) sent_tasks: BTreeMap<TaskId, u64>,
    /// At the home: the answers to changes of tasks, if the answers have not reached the link's
    /// spool yet.
    pub(crate) stored_answers: StoredTaskAnswers,
    /// At the home: the tasks that the annex has created.
    pub(crate) created_tasks: CreatedTasks,
    /// At the annex: the tasks as the home has them.
    pub(crate) tasks: BTreeMap<TaskId, MirroredTask>,
    /// At the annex: how far its events were sent.
    pub(crate) sent_events: SentEvents,
    /// At the home: the events of the annex that are not logged yet.
    pub(crate) received_events: ReceivedEvents,
}

impl TeamMirror {
    /// Opens the mirror of a team.
    ///
    /// # Errors
    ///
    /// If its state can't be read.
    pub(crate) fn open((team, created_at): (Team, u64), state: &StateDir) -> Result<TeamMirror, Error> {
        let known_messages = KnownMessages::open(state, team.name())?;
        let stored_answers = StoredTaskAnswers::open(state, team.name())?;
        let created_tasks = CreatedTasks::open(state, team.name())?;
        let tasks = read_task_records(state, team.name())?;
        let sent_events = SentEvents::open(state, team.name())?;
        let received_events = ReceivedEvents::open(state, team.name())?;
        Ok(TeamMirror {
            team,
            created_at,
            known_messages,
            cursors: BTreeMap::new(),
            unread: BTreeMap::new(),
            uncompared: BTreeSet::new(),
            members: BTreeMap::new(),
            members_are_sent: false,
            sent_config: None,
            sent_budget: None,
            home_config: None,
            sent_tasks: BTreeMap::new(),
            stored_answers,
            created_tasks,
            tasks,
            sent_events,
            received_events,
        })
    }

    pub(crate) fn name(&self) -> TeamName {
        self.team.name().clone()
    }

    /// Writes the record of a task, or removes it if there is nothing in it.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn save_task(&mut self, state: &StateDir, id: TaskId) -> Result<(), Error> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(()) };
        task.write_record(state, self.team.name(), id)?;
        if task.is_empty() {
            self.tasks.remove(&id);
        }
        Ok(())
    }
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
    state.remove(&sent_events_file(team))?;
    state.remove(&received_events_file(team))?;
    state.remove(&home_budget_file(team))?;
    remove_task_records(state, team)
}
