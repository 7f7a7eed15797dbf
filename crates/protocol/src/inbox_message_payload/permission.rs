//! Payloads of a permission request and its answer.
//!
//! A tool's input can be any JSON value, and is passed on unchanged. A program can also suggest
//! permission changes, such as a new rule. A suggestion of an unknown kind is passed on unchanged
//! too.

use crate::member_task_and_request_ids::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A teammate's request for permission to use a tool, sent to the lead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionRequest {
    /// Id of the request; the answer repeats it. Only the permission payloads write this key in
    /// snake case.
    #[serde(alias = "requestId")]
    pub request_id: RequestId,
    /// Name of the teammate. Despite the name of the key, it has no team.
    pub agent_id: String,
    /// Name of the tool.
    pub tool_name: String,
    /// Id of the tool call.
    #[serde(default)]
    pub tool_use_id: String,
    /// What the tool call is for.
    #[serde(default)]
    pub description: String,
    /// The tool's input.
    #[serde(default)]
    pub input: Value,
    /// Permission changes that could be granted together with the request.
    #[serde(default)]
    pub permission_suggestions: Vec<PermissionUpdate>,
}

/// The lead's answer to a permission request, sent to the teammate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionResponse {
    /// Id of the permission request.
    #[serde(alias = "requestId")]
    pub request_id: RequestId,
    /// The answer.
    #[serde(flatten)]
    pub outcome: PermissionOutcome,
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "subtype", rename_all = "lowercase")]
pub enum PermissionOutcome {
    /// The request is approved.
    Success {
        /// Details of the approval.
        response: PermissionGrant,
    },
    /// The request is denied.
    Error {
        /// The reason.
        error: String,
    },
}

/// Details of the approval of a permission request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionGrant {
    /// The input to use. Usually the request's input.
    #[serde(default)]
    pub updated_input: Value,
    /// Permission changes that are granted too.
    #[serde(default)]
    pub permission_updates: Vec<PermissionUpdate>,
}

/// A change of permissions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// Adds directories that the agent may access.
    AddDirectories {
        /// Absolute paths of the directories.
        directories: Vec<String>,
        /// How long the change holds, such as `session`.
        destination: String,
    },
    /// Changes the permission mode.
    SetMode {
        /// The new mode.
        mode: String,
        /// How long the change holds, such as `session`.
        destination: String,
    },
    /// Adds permission rules.
    AddRules {
        /// The added rules.
        rules: Vec<PermissionRule>,
        /// What the rules do: `allow`, `deny` or `ask`.
        behavior: String,
        /// How long the change holds, such as `session`.
        destination: String,
    },
    /// A change of an unknown kind, unchanged.
    #[serde(untagged)]
    Other(Value),
}

/// A permission rule for a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    /// Name of the tool.
    pub tool_name: String,
    /// Pattern for the tool's input. `None` matches every input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}
