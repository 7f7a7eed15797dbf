//! Log of the answers to members' requests: one file for each team, in teamd's state directory.
//!
//! A request counts as answered if its answer is in the member's inbox or in this log. The log is
//! needed because newer versions of Claude Code delete an answer from the inbox after reading it.
//!
//! A process first stores an answer in the inbox and then adds a line to the log. If the process
//! crashes between these two steps, only the inbox has the answer.

use crate::error::Error;
use crate::file_io::FILE_LIMIT;
use crate::state_directory_handle::StateDir;
use protocol::member_task_and_request_ids::RequestId;
use protocol::policy::AnsweredBy;
use protocol::state_file_names::{older_team_log, team_log};
use protocol::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Size at which a log file is rotated to `NAME.1`, in bytes.
const ROTATE_BYTES: u64 = FILE_LIMIT / 4;

/// The directory of the answer logs. The first answer creates it.
#[derive(Debug)]
pub(crate) struct AnswerLog(PathBuf);

/// One answer to a member's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredRequest {
    /// The member that made the request.
    pub member: MemberName,
    /// Id of the request.
    pub request_id: RequestId,
    /// Whether the request was approved.
    pub approved: bool,
    /// Who answered.
    pub answered_by: AnsweredBy,
    /// When the member made the answered request, in ms since the epoch. If the member made the
    /// request several times, this is the last time. A later request with the same id needs a new
    /// answer.
    pub last_asked_at: u64,
}

impl AnswerLog {
    /// Creates a log with its files in the directory `path`. Touches no file.
    pub(crate) fn new(path: PathBuf) -> AnswerLog {
        AnswerLog(path)
    }

    /// Reads the answers of a team. Files and lines that can't be read are skipped.
    pub(crate) fn read_team(&self, team: &TeamName) -> Vec<AnsweredRequest> {
        let Ok(true) = self.0.try_exists() else { return Vec::new() };
        let Ok(dir) = StateDir::open(&self.0) else { return Vec::new() };
        let files = [older_team_log(team), team_log(team)].map(|name| dir.read(&name).ok().flatten());
        let lines = files.iter().flatten().flat_map(|bytes| bytes.split(|byte| *byte == b'\n'));
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    pub(crate) fn append(&self, team: &TeamName, request: &AnsweredRequest) -> Result<(), Error> {
        let line = serde_json::to_string(request).expect("an answer has nothing that JSON cannot hold");
        StateDir::open(&self.0)?.append_line(&team_log(team), &line, ROTATE_BYTES)
    }

    /// Deletes the log of a team. Called when a team is created or deleted.
    pub(crate) fn delete(&self, team: &TeamName) -> Result<(), Error> {
        let Ok(true) = self.0.try_exists() else { return Ok(()) };
        let dir = StateDir::open(&self.0)?;
        dir.remove(&older_team_log(team))?;
        dir.remove(&team_log(team))
    }

    /// Deletes the logs of all session teams that are not in `existing_teams`.
    pub(crate) fn delete_ended_sessions(&self, existing_teams: &[TeamName]) -> Result<(), Error> {
        let Ok(true) = self.0.try_exists() else { return Ok(()) };
        let names = StateDir::open(&self.0)?.names()?;
        let team = |name: &String| TeamName::parse(name.split(".jsonl").next()?).ok();
        let ended_teams = names
            .iter()
            .filter_map(team)
            .filter(|team| team.is_claude_session() && !existing_teams.contains(team));
        ended_teams.into_iter().try_for_each(|team| self.delete(&team))
    }
}
