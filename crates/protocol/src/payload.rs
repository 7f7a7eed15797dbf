//! What the text of a message means: one of the known payloads, else plain text.
//!
//! Reading is tolerant (further fields are ignored, of duplicate keys the last counts), writing is exact: the
//! fields in the order in which the original writes them. Nothing said here is believed: a payload names
//! panes and senders that only our own roster knows for sure.

mod permission;

pub use permission::{
    PermissionGrant, PermissionOutcome, PermissionRequest, PermissionResponse, PermissionRule,
    PermissionUpdate,
};

use crate::id::{RequestId, TaskId};
use crate::json::{Object, decode_string, replace_lone_surrogates};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All kinds of payload, told apart by their `type`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Payload {
    /// A teammate ended a turn.
    IdleNotification(IdleNotification),
    /// A task has a new owner: the recipient.
    TaskAssignment(TaskAssignment),
    /// A task's owner is done with it.
    TaskCompleted(TaskCompleted),
    /// The lead asks a teammate to end.
    ShutdownRequest(ShutdownRequest),
    /// A teammate is about to end.
    ShutdownApproved(ShutdownApproved),
    /// A teammate will not end.
    ShutdownRejected(ShutdownRejected),
    /// A teammate in plan mode hands in its plan.
    PlanApprovalRequest(PlanApprovalRequest),
    /// The lead's word on a plan.
    PlanApprovalResponse(PlanApprovalResponse),
    /// A teammate asks before it uses a tool.
    PermissionRequest(PermissionRequest),
    /// The answer to a question for permission.
    PermissionResponse(PermissionResponse),
    /// The lead changes a teammate's permission mode.
    ModeSetRequest(ModeSetRequest),
    /// The lead changes the team's permissions.
    TeamPermissionUpdate(TeamPermissionUpdate),
    /// A member ended without a word.
    TeammateTerminated(TeammateTerminated),
}

/// Every `type` that is more than text to some program: ours, and two that Claude Code alone reads.
const PAYLOAD_TYPES: [&str; 15] = [
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
    "sandbox_permission_request",
    "sandbox_permission_response",
];

impl Payload {
    /// What a text would be to a program that looks at its `type` and is content with less beside it than we are.
    pub fn detect_type(text: &str) -> Option<&'static str> {
        let kind = decode_string(Object::parse(text).ok()?.get("type")?)?;
        PAYLOAD_TYPES.into_iter().find(|known| *known == kind)
    }

    /// Reads a message's text; none is plain text.
    pub fn parse(text: &str) -> Option<Payload> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        // By way of a value, which lets the last of duplicate keys win.
        let value: Value = serde_json::from_str(&replace_lone_surrogates(text)).ok()?;
        serde_json::from_value(value).ok()
    }

    /// The payload as a message's text.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("payloads have string keys and no failing impl")
    }

    /// The value of its `type`.
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
        }
    }
}

/// Why a teammate is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum IdleReason {
    /// Its turn ended by itself.
    Available,
    /// Somebody ended its turn.
    Interrupted,
    /// Its turn failed.
    Failed,
}

impl IdleReason {
    /// As it is spelled.
    pub fn as_str(self) -> &'static str {
        match self {
            IdleReason::Available => "available",
            IdleReason::Interrupted => "interrupted",
            IdleReason::Failed => "failed",
        }
    }
}

/// Teammate to lead, once per turn that ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IdleNotification {
    /// The teammate.
    pub from: String,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// Why.
    pub idle_reason: IdleReason,
    /// `[to NAME] SUMMARY` of direct messages to peers in that turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The task that it ended with, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_task_id: Option<String>,
    /// `completed`, `failed` and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_status: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_reason: Option<String>,
}

impl IdleNotification {
    /// Whether the text of a message is a notification that says only that a turn has ended: no summary, no task, no
    /// failure.
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

/// Whoever set the owner, to the new owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskAssignment {
    /// Which task.
    pub task_id: TaskId,
    /// Its subject.
    pub subject: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// Who set the owner.
    #[serde(default)]
    pub assigned_by: String,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// A task's owner, to the lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TaskCompleted {
    /// The owner.
    pub from: String,
    /// Which task.
    pub task_id: TaskId,
    /// Its subject.
    #[serde(default)]
    pub task_subject: String,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// Lead to teammate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRequest {
    /// What the answer refers to.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Who asks.
    pub from: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// Teammate to lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownApproved {
    /// The request's id.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Who ends.
    pub from: String,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// What it says its pane is. Never acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pane_id: Option<String>,
    /// What it says its backend is. Never acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<String>,
}

/// Teammate to lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShutdownRejected {
    /// The request's id.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Who works on.
    pub from: String,
    /// Why.
    #[serde(default)]
    pub reason: String,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
}

/// Teammate to lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalRequest {
    /// Whose plan.
    pub from: String,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// Where it says the plan lies. For showing; never opened.
    #[serde(default)]
    pub plan_file_path: String,
    /// The plan, in Markdown.
    #[serde(default)]
    pub plan_content: String,
    /// What the answer refers to.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
}

/// Lead to teammate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PlanApprovalResponse {
    /// The request's id.
    #[serde(alias = "request_id")]
    pub request_id: RequestId,
    /// Yes or no.
    pub approved: bool,
    /// What to do otherwise; with a no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// ISO 8601.
    #[serde(default)]
    pub timestamp: String,
    /// The mode to go on in: the lead's own; with a yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
}

/// Lead to teammate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModeSetRequest {
    /// The permission mode.
    pub mode: String,
    /// Who asks.
    pub from: String,
}

/// Lead to teammate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TeamPermissionUpdate {
    /// What changes.
    pub permission_update: PermissionUpdate,
    /// For which directory.
    #[serde(default)]
    pub directory_path: String,
    /// For which tool.
    #[serde(default)]
    pub tool_name: String,
}

/// The ended member's name to the lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TeammateTerminated {
    /// How it ended, for people.
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anything_else_is_plain_text() {
        for text in
            ["", "hello", "[1]", "{}", r#"{"type":"other"}"#, r#"{"type":"idle_notification"}"#, "{\"type\""]
        {
            assert_eq!(Payload::parse(text), None, "{text}");
        }
        let deep = format!("{{\"type\":{}", "[".repeat(100_000));
        assert_eq!(Payload::parse(&deep), None);
    }

    #[test]
    fn a_number_says_the_same_when_it_is_written_again() {
        let text = include_str!("../../../fuzz/corpus/payload/sample-16");
        let payload = Payload::parse(text).unwrap();
        assert_eq!(Payload::parse(&payload.to_text()), Some(payload));
    }

    #[test]
    fn a_kind_is_known_whatever_stands_beside_it() {
        for kind in PAYLOAD_TYPES {
            let deep = format!(" {{\"x\":{}{},\"type\":\"{kind}\"}}", "[".repeat(200), "]".repeat(200));
            for text in [format!("\n{{\"type\": \"{kind}\"}} "), deep] {
                assert_eq!(Payload::detect_type(&text), Some(kind), "{text}");
            }
        }
        for text in ["", "idle_notification", "{}", r#"{"type":"other"}"#, r#"{"type":7}"#, r#"["type"]"#] {
            assert_eq!(Payload::detect_type(text), None, "{text}");
        }
    }

    #[test]
    fn both_spellings_of_the_request_id_are_read() {
        for key in ["requestId", "request_id"] {
            let text = format!(r#" {{"type":"shutdown_request","{key}":"x-1","from":"team-lead","new":[]}}"#);
            let Some(Payload::ShutdownRequest(request)) = Payload::parse(&text) else { panic!("{text}") };
            assert_eq!(request.request_id.as_str(), "x-1");
        }
    }

    #[test]
    fn lone_surrogates_and_duplicate_keys_do_not_hide_a_payload() {
        let text = r#"{"type":"mode_set_request","mode":"plan","mode":"default","from":"\ud83e"}"#;
        let request = ModeSetRequest { mode: "default".into(), from: "\u{fffd}".into() };
        assert_eq!(Payload::parse(text), Some(Payload::ModeSetRequest(request)));
    }

    #[test]
    fn the_kinds_without_a_sample_keep_their_order() {
        for text in [
            r#"{"type":"mode_set_request","mode":"plan","from":"team-lead"}"#,
            r#"{"type":"team_permission_update","permissionUpdate":{"type":"setMode","mode":"plan","destination":"session"},"directoryPath":"/x","toolName":"Edit"}"#,
            r#"{"type":"team_permission_update","permissionUpdate":{"type":"new","x":1},"directoryPath":"/x","toolName":"Edit"}"#,
            r#"{"type":"teammate_terminated","message":"ann has ended"}"#,
        ] {
            assert_eq!(Payload::parse(text).unwrap().to_text(), text);
        }
    }
}
