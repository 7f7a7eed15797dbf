//! The contents of items. A new kind needs a new [`LINK_VERSION`](super::LINK_VERSION), because an
//! end can't store an item that it can't read.

use crate::control_socket::{Call, Response};
use crate::error_kind_and_report::ErrorReport;
use crate::event_log_line::Event;
use crate::inbox_file::Message;
use crate::member_task_and_request_ids::TaskId;
use crate::task::{Task, deserialize_task};
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};

/// The content of an item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ItemPayload {
    /// A message for an inbox.
    Message {
        /// The team of the recipient.
        team: TeamName,
        /// The recipient.
        to: MemberName,
        /// The message.
        message: Message,
    },
    /// A task was created or changed.
    Task {
        /// The task's team.
        team: TeamName,
        /// The whole task after the change.
        #[serde(deserialize_with = "deserialize_task")]
        task: Box<Task>,
    },
    /// A member of the annex claims a task. The home decides.
    TaskClaim(TaskClaim),
    /// The home's answer to a claim.
    TaskClaimAnswer(TaskClaimAnswer),
    /// A call of an agent on the annex's control socket that the home must carry out.
    Call(Box<Call>),
    /// The answer to a call.
    Reply {
        /// The sequence number of the item with the call.
        call: u64,
        /// The answer.
        response: Box<Response>,
    },
    /// A line of the event log.
    Event(Box<Event>),
}

/// A claim of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskClaim {
    /// The task's team.
    pub team: TeamName,
    /// The claimed task.
    pub task: TaskId,
    /// The member that claims the task.
    pub claimant: MemberName,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskClaimAnswer {
    /// The claim.
    pub claim: TaskClaim,
    /// Why the claimant does not get the task. `None` if it owns the task now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}
