//! What all handles on one root share: its open directories, how its files are written, and the records beside it.

use crate::answer_log::AnswerLog;
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::IoContext;
use crate::journal::storage::Journal;
use crate::layout::{TASKS_DIR, TEAMS_DIR};
use crate::roster_file::read_roster_file;
use protocol::capabilities::Capabilities;
use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct RootHandles {
    pub(crate) dir: DirHandle,
    pub(crate) teams: DirHandle,
    pub(crate) tasks: DirHandle,
    pub(crate) io: IoContext,
    /// Into the teams of Claude Code's sessions.
    pub(crate) foreign_io: IoContext,
    /// To what members ask.
    pub(crate) answer_log: AnswerLog,
    /// Of what was sent.
    pub(crate) journal: Journal,
    pub(crate) state_dir: PathBuf,
}

impl RootHandles {
    pub(crate) fn is_current(&self) -> bool {
        self.dir.is_at_its_path()
            && self.dir.has_same_dir(TEAMS_DIR, &self.teams)
            && self.dir.has_same_dir(TASKS_DIR, &self.tasks)
    }

    /// What the program of that member can follow, as the daemon's roster tells.
    pub(crate) fn member_capabilities(&self, team: &TeamName, name: &AgentName) -> Capabilities {
        read_roster_file(&self.state_dir).unwrap_or_default().member_capabilities(team, name)
    }

    /// Whether the member is suspended, as the daemon's roster tells.
    pub(crate) fn is_suspended(&self, team: &TeamName, name: &AgentName) -> bool {
        read_roster_file(&self.state_dir).unwrap_or_default().is_suspended(team, name)
    }

    pub(crate) fn delete_records(&self, team: &TeamName) -> Result<(), Error> {
        self.answer_log.delete(team).and(self.journal.delete_team(team))
    }
}
