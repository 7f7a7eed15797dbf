//! A question for permission and its answer. The input is the tool's, of any shape, and is handed on as it
//! came; a suggestion of a kind we do not know is kept as it is.

use crate::id::RequestId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Teammate to lead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionRequest {
    /// What the answer refers to; in snake case here, alone of all payloads.
    #[serde(alias = "requestId")]
    pub request_id: RequestId,
    /// Who asks: the plain name, in spite of the key.
    pub agent_id: String,
    /// The tool.
    pub tool_name: String,
    /// The call.
    #[serde(default)]
    pub tool_use_id: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The tool's input.
    #[serde(default)]
    pub input: Value,
    /// What could be allowed along with it.
    #[serde(default)]
    pub permission_suggestions: Vec<PermissionUpdate>,
}

/// Lead to teammate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionResponse {
    /// The request's id.
    #[serde(alias = "requestId")]
    pub request_id: RequestId,
    /// The answer.
    #[serde(flatten)]
    pub outcome: PermissionOutcome,
}

/// The answer to a question for permission.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "subtype", rename_all = "lowercase")]
pub enum PermissionOutcome {
    /// Yes.
    Success {
        /// With what.
        response: PermissionGrant,
    },
    /// No.
    Error {
        /// Why not.
        error: String,
    },
}

/// What a yes carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionGrant {
    /// The input to use: the request's own, unless changed.
    #[serde(default)]
    pub updated_input: Value,
    /// What is allowed from now on.
    #[serde(default)]
    pub permission_updates: Vec<PermissionUpdate>,
}

/// A change of permissions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PermissionUpdate {
    /// More directories.
    AddDirectories {
        /// Absolute paths.
        directories: Vec<String>,
        /// `session` and the like.
        destination: String,
    },
    /// Another permission mode.
    SetMode {
        /// The mode.
        mode: String,
        /// `session` and the like.
        destination: String,
    },
    /// More rules.
    AddRules {
        /// The rules.
        rules: Vec<PermissionRule>,
        /// `allow`, `deny`, `ask`.
        behavior: String,
        /// `session` and the like.
        destination: String,
    },
    /// A kind we do not know, as it came.
    #[serde(untagged)]
    Other(Value),
}

/// What a tool may be used for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRule {
    /// The tool.
    pub tool_name: String,
    /// A pattern; none means the whole tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_content: Option<String>,
}
