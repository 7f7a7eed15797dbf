//! Which task is next: what the daemon, which is told of every change of the list, knows without a look at all of it.

use crate::id::TaskId;
use crate::name::{AgentName, TeamName};
use crate::task::{Task, left, next};
use serde::{Deserialize, Serialize};
use std::borrow::Borrow;

/// Which task may a member take up? Answered by what was written before it was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextTask {
    /// Its team.
    pub team: TeamName,
    /// The member, or `team-lead`.
    pub owner: AgentName,
    /// One that it has in progress comes first.
    #[serde(default)]
    pub resume: bool,
}

impl NextTask {
    /// The answer of whoever has the list.
    pub fn of<T: Borrow<Task>>(&self, all: &[T]) -> Next {
        let back = self.resume.then(|| left(all, &self.owner)).flatten().map(|task| task.id);
        back.or_else(|| next(all, &self.owner)).map_or(Next::Nothing, Next::Task)
    }
}

/// The answer, a hint: who has the task is decided by the files, under their locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Next {
    /// This one.
    Task(TaskId),
    /// There is none. Who is idle is woken when one comes.
    Nothing,
    /// It can't tell: nobody tells it of changes. The files say.
    Unknown,
}
