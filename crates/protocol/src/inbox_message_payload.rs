//! Payloads of inbox messages: structured messages, stored as JSON in the text of a message.
//!
//! If a message's text is not a known payload, it is plain text. Unknown fields are ignored. If a
//! key occurs more than once, its last value counts. The fields are written in the order that
//! Claude Code uses. A payload may name its sender and panes, but teamd does not trust these
//! fields. It uses its own roster instead.

#[cfg(test)]
mod tests;

mod permission;

pub use permission::{
    PermissionGrant, PermissionOutcome, PermissionRequest, PermissionResponse, PermissionRule,
    PermissionUpdate,
};

use crate::format_preserving_json::{Object, decode_string, replace_lone_surrogates};
use crate::member_task_and_request_ids::{RequestId, TaskId};
use crate::team_and_member_names::MemberName;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// A payload. Its kind is the value of the key `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Payload {
    /// A teammate reports the end of a turn to the lead.
    IdleNotification(IdleNotification),
    /// The recipient is the new owner of a task.
    TaskAssignment(TaskAssignment),
    /// A task's owner reports that the task is completed.
    TaskCompleted(TaskCompleted),
    /// The lead asks a teammate to shut down.
    ShutdownRequest(ShutdownRequest),
    /// A teammate agrees to shut down.
    ShutdownApproved(ShutdownApproved),
    /// A teammate refuses to shut down.
    ShutdownRejected(ShutdownRejected),
    /// A teammate in plan mode submits its plan.
    PlanApprovalRequest(PlanApprovalRequest),
    /// The lead approves or rejects a plan.
    PlanApprovalResponse(PlanApprovalResponse),
    /// A teammate asks for permission to use a tool.
    PermissionRequest(PermissionRequest),
    /// The answer to a permission request.
    PermissionResponse(PermissionResponse),
    /// The lead changes a teammate's permission mode.
    ModeSetRequest(ModeSetRequest),
    /// The lead changes the team's permissions.
    TeamPermissionUpdate(TeamPermissionUpdate),
    /// A member exited without a shutdown request.
    TeammateTerminated(TeammateTerminated),
    /// An ask in the background has ended.
    TaskNotification(TaskNotification),
}

/// Every `type` that some program treats as a payload. The last two are known only to Claude Code.
const PAYLOAD_TYPES: [&str; 16] = [
    "idle_notification",
    "task_assignment",
    "task_completed",
    "shutdown_request",
    "shutdown_approved",
    "shutdown_rejected",
    "plan_approval_request",
    "plan_approval_response",
    "permission_request",
    "permission_response",
    "mode_set_request",
    "team_permission_update",
    "teammate_terminated",
    "task_notification",
    "sandbox_permission_request",
    "sandbox_permission_response",
];

impl Payload {
    /// The `type` of the payload in `text`. `None` for plain text. The other fields of the payload
    /// may be missing or invalid, because other programs may look only at the `type`.
    pub fn detect_type(text: &str) -> Option<&'static str> {
        let kind = decode_string(Object::parse(text).ok()?.get("type")?)?;
        PAYLOAD_TYPES.into_iter().find(|known| *known == kind)
    }

    /// Parses a message's text. `None` if the text is plain text.
    pub fn parse(text: &str) -> Option<Payload> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        // A `Value` keeps the last of duplicate keys. Direct deserialization would fail on them.
        let value: Value = serde_json::from_str(&replace_lone_surrogates(text)).ok()?;
        serde_json::from_value(value).ok()
    }

    /// The payload as the text of a message.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("payloads have string keys and no failing impl")
    }

    /// The value of the payload's key `type`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Payload::IdleNotification(_) => "idle_notification",
            Payload::TaskAssignment(_) => "task_assignment",
            Payload::TaskCompleted(_) => "task_completed",
            Payload::ShutdownRequest(_) => "shutdown_request",
            Payload::ShutdownApproved(_) => "shutdown_approved",
            Payload::ShutdownRejected(_) => "shutdown_rejected",
            Payload::PlanApprovalRequest(_) => "plan_approval_request",
            Payload::PlanApprovalResponse(_) => "plan_approval_response",
            Payload::PermissionRequest(_) => "permission_request",
            Payload::PermissionResponse(_) => "permission_response",
            Payload::ModeSetRequest(_) => "mode_set_request",
            Payload::TeamPermissionUpdate(_) => "team_permission_update",
            Payload::TeammateTerminated(_) => "teammate_terminated",
            Payload::TaskNotification(_) => "task_notification",
        }
    }
}

/// Why a teammate is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IdleReason {
    /// The turn ended normally.
    Available,
    /// The turn was interrupted.
    Interrupted,
    /// The turn failed.
    Failed,
}

impl IdleReason {
    /// The reason's spelling in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            IdleReason::Available => "available",
            IdleReason::Interrupted => "interrupted",
            IdleReason::Failed => "failed",
        }
    }
}

/// A teammate's report to the lead at the end of each turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IdleNotification {
    /// Name of the teammate.
    pub from: String,
    /// Time of the report, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// Why the teammate is idle.
    pub idle_reason: IdleReason,
    /// Direct messages that the teammate sent to other teammates during the turn, each as
    /// `[to NAME] SUMMARY`. `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Id of the task that ended with the turn. `None` if none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_task_id: Option<String>,
    /// How the task ended, such as `completed` or `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_status: Option<String>,
    /// Why the turn or task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
}

impl IdleNotification {
    /// Whether `text` is an idle notification that only says that a turn ended: it has no summary,
    /// no task and no failure.
    pub fn is_bare_in(text: &str) -> bool {
        matches!(
            Payload::parse(text),
            Some(Payload::IdleNotification(IdleNotification {
                idle_reason: IdleReason::Available,
                summary: None,
                completed_task_id: None,
                completed_status: None,
                failure_reason: None,
                ..
            }))
        )
    }
}

/// Tells the new owner of a task about the assignment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskAssignment {
    /// Id of the task.
    pub task_id: TaskId,
    /// Subject of the task.
    pub subject: String,
    /// Description of the task.
    #[serde(default)]
    pub description: String,
    /// Name of the member that set the owner.
    #[serde(default)]
    pub assigned_by: String,
    /// Time of the assignment, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// Tells the lead that a task is completed. Sent by the task's owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskCompleted {
    /// Name of the owner.
    pub from: String,
    /// Id of the task.
    pub task_id: TaskId,
    /// Subject of the task.
    #[serde(default)]
    pub task_subject: String,
    /// Time of the completion, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// The lead's request that a teammate shuts down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRequest {
    /// Id of the request, which the answer repeats.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Name of the sender.
    pub from: String,
    /// The reason. `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Time of the request, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// A teammate's agreement to shut down, sent to the lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownApproved {
    /// Id of the shutdown request.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Name of the teammate that exits.
    pub from: String,
    /// Time of the answer, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// The teammate's pane according to the teammate. teamd ignores this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_id: Option<String>,
    /// The teammate's backend according to the teammate. teamd ignores this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<String>,
}

impl ShutdownApproved {
    /// A teammate's agreement to shut down. It leaves out the id of the teammate's pane, because a
    /// lead on another tmux server would close the pane that has the same id there.
    pub fn new(request_id: RequestId, from: &MemberName, timestamp: String) -> ShutdownApproved {
        let from = from.to_string();
        ShutdownApproved { request_id, from, timestamp, pane_id: None, backend_type: None }
    }
}

/// A teammate's refusal to shut down, sent to the lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRejected {
    /// Id of the shutdown request.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Name of the teammate that continues.
    pub from: String,
    /// Why the teammate refuses.
    #[serde(default)]
    pub reason: String,
    /// Time of the answer, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// A teammate's plan, sent to the lead for approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalRequest {
    /// Name of the teammate.
    pub from: String,
    /// Time of the request, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// The plan's file according to the teammate. Only shown to people, never opened.
    #[serde(default)]
    pub plan_file_path: String,
    /// The plan, in Markdown.
    #[serde(default)]
    pub plan_content: String,
    /// Id of the request, which the answer repeats.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
}

/// The lead's answer to a plan, sent to the teammate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalResponse {
    /// Id of the plan approval request.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Whether the plan is approved.
    pub approved: bool,
    /// What to change, if the plan is rejected. `None` if it is approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Time of the answer, ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// The permission mode in which the teammate carries out an approved plan. `None` if the plan
    /// is rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
}

/// The lead's change of a teammate's permission mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeSetRequest {
    /// The new permission mode.
    pub mode: String,
    /// Name of the sender.
    pub from: String,
}

/// The lead's change of the team's permissions, sent to a teammate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TeamPermissionUpdate {
    /// The change.
    pub permission_update: PermissionUpdate,
    /// The directory for which the change holds.
    #[serde(default)]
    pub directory_path: String,
    /// The tool for which the change holds.
    #[serde(default)]
    pub tool_name: String,
}

/// Tells the lead that a member has exited. The message's sender is the name of that member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeammateTerminated {
    /// How the member exited, as a text for people.
    pub message: String,
}

/// Tells the lead that an ask in the background has ended. The message's sender is the id of the
/// ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskNotification {
    /// The id of the ask.
    pub task_id: String,
    /// The file with the answer.
    pub output_file: PathBuf,
    /// How it ended.
    pub status: TaskNotificationStatus,
    /// The first line of the answer, or why there is none, as a text for people.
    pub message: String,
}

/// How an ask in the background ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TaskNotificationStatus {
    /// With an answer.
    Completed,
    /// The program failed, or the time was up.
    Failed,
    /// It was interrupted.
    Killed,
}

impl TaskNotificationStatus {
    /// The status as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            TaskNotificationStatus::Completed => "completed",
            TaskNotificationStatus::Failed => "failed",
            TaskNotificationStatus::Killed => "killed",
        }
    }
}
