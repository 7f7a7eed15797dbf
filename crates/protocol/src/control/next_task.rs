//! Which task is next: what the daemon, which is told of every change of the list, knows without a look at all of it.

use crate::id::TaskId;
use crate::name::{AgentName, TeamName};
use serde::{Deserialize, Serialize};

/// Which task may a member take up? Answered by what was written before it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextTaskRequest {
    /// Its team.
    pub team: TeamName,
    /// The member, or `team-lead`.
    pub owner: AgentName,
    /// One that it has in progress comes first.
    #[serde(default)]
    #[serde(rename = "resume")]
    pub include_in_progress: bool,
}

/// The answer, a hint: who has the task is decided by the files, under their locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NextTaskHint {
    /// This one.
    Task(TaskId),
    /// There is none. Who is idle is woken when one comes.
    #[serde(rename = "nothing")]
    NoTask,
    /// It can't tell: nobody tells it of changes. The files say.
    Unknown,
}
