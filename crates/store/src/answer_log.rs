//! Which requests have had their answer, in our own record: newer clients take an answer out of their inbox once they
//! have read it, and what has no answer in there would count as open again.
//!
//! A file for each team, a line for each answer, only ever added to by whoever has answered. It comes after the answer:
//! a crash in between leaves it to the inbox alone, where the answer stands until its client has read it.

use crate::error::Error;
use crate::file::FILE_LIMIT;
use crate::state_dir::StateDir;
use protocol::id::RequestId;
use protocol::name::{AgentName, TeamName};
use protocol::policy::AnsweredBy;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Beyond it the record is begun anew, and the one before kept, bytes.
const ROTATE_BYTES: u64 = FILE_LIMIT / 4;

/// Where the records are; the directory is made by the first answer.
#[derive(Debug)]
pub(crate) struct AnswerLog(PathBuf);

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredRequest {
    /// To whom.
    #[serde(rename = "to")]
    pub member: AgentName,
    /// To what.
    #[serde(rename = "request")]
    pub request_id: RequestId,
    /// Whether it was a yes.
    pub approved: bool,
    /// Whose.
    #[serde(rename = "by")]
    pub answered_by: AnsweredBy,
    /// When it was asked, as the asker says, ms since the epoch: what is asked later is asked anew.
    #[serde(rename = "asked")]
    pub asked_at: u64,
}

impl AnswerLog {
    /// With its files in `path`.
    pub(crate) fn new(path: PathBuf) -> AnswerLog {
        AnswerLog(path)
    }

    /// Those of a team. What can't be read of it is as if it had not been written.
    pub(crate) fn read_team(&self, team: &TeamName) -> Vec<AnsweredRequest> {
        let Ok(true) = self.0.try_exists() else { return Vec::new() };
        let Ok(dir) = StateDir::open(&self.0) else { return Vec::new() };
        let parts =
            [format!("{}.1", file_name(team)), file_name(team)].map(|name| dir.read(&name).ok().flatten());
        let lines = parts.iter().flatten().flat_map(|part| part.split(|byte| *byte == b'\n'));
        lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
    }

    pub(crate) fn append(&self, team: &TeamName, answered: &AnsweredRequest) -> Result<(), Error> {
        let line = serde_json::to_string(answered).expect("an answer has nothing that JSON cannot hold");
        StateDir::open(&self.0)?.append_line(&file_name(team), &line, ROTATE_BYTES)
    }

    /// Of a team that is gone, or begins.
    pub(crate) fn delete(&self, team: &TeamName) -> Result<(), Error> {
        let Ok(true) = self.0.try_exists() else { return Ok(()) };
        let dir = StateDir::open(&self.0)?;
        dir.remove(&format!("{}.1", file_name(team)))?;
        dir.remove(&file_name(team))
    }

    /// Of every session that is not one of `there`.
    pub(crate) fn delete_ended_sessions(&self, there: &[TeamName]) -> Result<(), Error> {
        let Ok(true) = self.0.try_exists() else { return Ok(()) };
        let names = StateDir::open(&self.0)?.names()?;
        let team = |name: &String| TeamName::parse(name.split(".jsonl").next()?).ok();
        let gone =
            names.iter().filter_map(team).filter(|team| team.is_claude_session() && !there.contains(team));
        gone.into_iter().try_for_each(|team| self.delete(&team))
    }
}

fn file_name(team: &TeamName) -> String {
    format!("{team}.jsonl")
}
