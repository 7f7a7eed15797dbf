//! Entries of members in config.json.
//!
//! The lead's entry has fewer fields than a teammate's. Optional fields may be missing in an entry,
//! because other programs omit them.

use crate::format_preserving_json::{FieldError, Object};
use crate::member_color::Color;
use crate::member_task_and_request_ids::AgentId;
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Serialize, Serializer};

/// One member. The order of its fields is their order in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Id of the member: `NAME@TEAM`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub agent_id: String,
    /// Name of the member, without the team.
    pub name: MemberName,
    /// Type of agent, such as `team-lead` or `general-purpose`. Empty if the file has none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub agent_type: String,
    /// Model of the agent. Empty if the file has none.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub model: String,
    /// The prompt of the spawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Name of the member's color. May be a color that teamd does not know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Whether the member starts in plan mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_mode_required: Option<bool>,
    /// When the member joined, in milliseconds since the epoch.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub joined_at: u64,
    /// The member's pane: `%14`, `in-process`, or empty for a lead. Only shown, never used.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub tmux_pane_id: String,
    /// Working directory, an absolute path.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub cwd: String,
    /// Reserved; always an empty array.
    #[serde(serialize_with = "serialize_empty_array")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub subscriptions: (),
    /// The backend: `tmux`, `in-process`, `iterm2`, or another program's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<String>,
    /// Whether the member is in a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Path of the member's git worktree. Only shown, never used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_path: Option<String>,
    /// The permission mode, if it was changed after the spawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The host that runs the member, if it is not this one. A key of teamd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The fields of a new teammate's entry.
#[derive(Debug, Clone)]
pub struct TeammateEntry {
    /// Name of the teammate.
    pub name: MemberName,
    /// Type of agent. `None` means `general-purpose`.
    pub agent_type: Option<String>,
    /// Model of the agent. May be empty.
    pub model: String,
    /// The prompt of the spawn.
    pub prompt: String,
    /// The teammate's color.
    pub color: Color,
    /// Whether the teammate starts in plan mode.
    pub plan_mode_required: bool,
    /// When the teammate joined, in milliseconds since the epoch.
    pub joined_at: u64,
    /// The teammate's pane: `%14` or `in-process`.
    pub tmux_pane_id: String,
    /// Working directory, an absolute path.
    pub cwd: String,
    /// The backend, such as `tmux` or `in-process`.
    pub backend_type: String,
    /// Path of the teammate's git worktree. `None` if it has none.
    pub worktree_path: Option<String>,
}

impl Member {
    /// Whether the member is still in plan mode: it started in plan mode and no plan was approved.
    pub fn is_planning(&self) -> bool {
        let has_left_plan_mode =
            self.mode.as_deref().is_some_and(|mode| mode != PermissionMode::Plan.as_str());
        self.plan_mode_required == Some(true) && !has_left_plan_mode
    }

    /// Whether the entries are equal, also in the case of the name.
    pub fn is_identical(&self, other: &Member) -> bool {
        self == other && self.name.as_str() == other.name.as_str()
    }

    /// The entry of the lead of a new team.
    pub fn lead(
        team: &TeamName,
        agent_type: Option<String>,
        model: String,
        cwd: String,
        joined_at: u64,
    ) -> Member {
        let name = MemberName::lead();
        Member {
            agent_id: AgentId { name: name.clone(), team: team.clone() }.to_string(),
            agent_type: agent_type.unwrap_or_else(|| name.to_string()),
            name,
            model,
            joined_at,
            cwd,
            prompt: None,
            color: None,
            plan_mode_required: None,
            tmux_pane_id: String::new(),
            subscriptions: (),
            backend_type: None,
            is_active: None,
            worktree_path: None,
            mode: None,
            host: None,
        }
    }

    /// The entry of a teammate that starts its first turn.
    pub fn teammate(team: &TeamName, entry: TeammateEntry) -> Member {
        Member {
            agent_id: AgentId { name: entry.name.clone(), team: team.clone() }.to_string(),
            name: entry.name,
            agent_type: entry.agent_type.unwrap_or_else(|| "general-purpose".to_owned()),
            model: entry.model,
            prompt: Some(entry.prompt),
            color: Some(entry.color.to_string()),
            plan_mode_required: Some(entry.plan_mode_required),
            joined_at: entry.joined_at,
            tmux_pane_id: entry.tmux_pane_id,
            cwd: entry.cwd,
            subscriptions: (),
            backend_type: Some(entry.backend_type),
            is_active: Some(true),
            worktree_path: entry.worktree_path,
            mode: None,
            host: None,
        }
    }

    /// Parses one element of `members`.
    pub(super) fn from_object(object: &Object) -> Result<Member, FieldError> {
        Ok(Member {
            agent_id: object.optional_string("agentId")?.unwrap_or_default(),
            name: MemberName::new_unchecked(&object.string("name")?),
            agent_type: object.optional_string("agentType")?.unwrap_or_default(),
            model: object.optional_string("model")?.unwrap_or_default(),
            prompt: object.optional_string("prompt")?,
            color: object.optional_string("color")?,
            plan_mode_required: object.optional_boolean("planModeRequired")?,
            joined_at: object.optional_integer("joinedAt")?.unwrap_or(0),
            tmux_pane_id: object.optional_string("tmuxPaneId")?.unwrap_or_default(),
            cwd: object.optional_string("cwd")?.unwrap_or_default(),
            subscriptions: (),
            backend_type: object.optional_string("backendType")?,
            is_active: object.optional_boolean("isActive")?,
            worktree_path: object.optional_string("worktreePath")?,
            mode: object.optional_string("mode")?,
            host: object.optional_string("host")?,
        })
    }
}

fn serialize_empty_array<S: Serializer>(_: &(), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(std::iter::empty::<()>())
}
