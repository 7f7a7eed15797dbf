//! The state that all handles of one root share: open directories, options for writes, cached
//! configs, the log of answers to members' requests, and the journal.

use crate::answer_log::AnswerLog;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::IoOptions;
use crate::message_journal::journal_and_tail_index_files::Journal;
use crate::read_roster_and_leads_files::read_roster_file;
use crate::task_execution_lock_files::delete_task_holds;
use crate::team_config_cache::ConfigCaches;
use crate::team_file_names::{TASKS_DIR, TEAMS_DIR};
use protocol::check_program_supports_answer::Capabilities;
use protocol::member_task_and_request_ids::RequestId;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeSet;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct SharedRootState {
    pub(crate) dir: DirHandle,
    pub(crate) teams: DirHandle,
    pub(crate) tasks: DirHandle,
    pub(crate) io: IoOptions,
    /// The options for writes into the session teams of Claude Code.
    pub(crate) foreign_io: IoOptions,
    pub(crate) answer_log: AnswerLog,
    pub(crate) journal: Journal,
    pub(crate) state_dir: PathBuf,
    pub(crate) config_caches: ConfigCaches,
}

impl SharedRootState {
    /// Whether the open directories are still the ones at their paths.
    pub(crate) fn is_current(&self) -> bool {
        self.dir.is_at_its_path()
            && self.dir.has_same_dir(TEAMS_DIR, &self.teams)
            && self.dir.has_same_dir(TASKS_DIR, &self.tasks)
    }

    /// The capabilities of a member's program, from the daemon's roster.
    pub(crate) fn member_capabilities(&self, team: &TeamName, name: &MemberName) -> Capabilities {
        read_roster_file(&self.state_dir).unwrap_or_default().member_capabilities(team, name)
    }

    /// See [`crate::Team::confirms_claims`].
    pub(crate) fn confirms_claims(&self, team: &TeamName, name: &MemberName) -> bool {
        read_roster_file(&self.state_dir).unwrap_or_default().confirms_claims(team, name)
    }

    /// Whether the member is suspended, from the daemon's roster.
    pub(crate) fn is_suspended(&self, team: &TeamName, name: &MemberName) -> bool {
        read_roster_file(&self.state_dir).unwrap_or_default().is_suspended(team, name)
    }

    /// The requests of suspended members for the approval of their plans, read from the roster. A
    /// member sends its request again, with the same id, when the member is resumed.
    pub(crate) fn plans_to_resubmit(&self, team: &TeamName) -> BTreeSet<RequestId> {
        read_roster_file(&self.state_dir).unwrap_or_default().plans_to_resubmit(team)
    }

    pub(crate) fn delete_records(&self, team: &TeamName) -> Result<(), Error> {
        let records = self.answer_log.delete(team).and(self.journal.delete_team(team));
        records.and(delete_task_holds(&self.state_dir, team))
    }
}
