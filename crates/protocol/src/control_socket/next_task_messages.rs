//! The messages with which a client asks the daemon for the next task of a member. The daemon
//! tracks all changes of the task list, so it replies without reading the list.

use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// Asks which task a member may claim next. The reply reflects all changes of the task files that
/// were written before the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NextTaskRequest {
    /// The member's team.
    pub team: TeamName,
    /// The member, or `team-lead`.
    pub owner: MemberName,
    /// Whether a task that the member already has in progress comes first.
    #[serde(default)]
    pub include_in_progress: bool,
}

/// Reply to a [`NextTaskRequest`]. The caller must still claim the suggested task in the task
/// files, under their locks, because another member may be faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NextTaskHint {
    /// The suggested task.
    Task(TaskId),
    /// There is no task. An idle member is woken when there is one.
    NoTask,
    /// The daemon does not know the next task, because the file system sends it no events about
    /// changes. The caller reads the task files.
    Unknown,
}
