//! A member's entry. The lead has the first eight fields only; what a teammate has besides is optional in
//! one type, since others leave out what they please.

use crate::color::Color;
use crate::id::AgentId;
use crate::json::{FieldError, Object};
use crate::name::{AgentName, TeamName};
use crate::permission_mode::PermissionMode;
use serde::{Serialize, Serializer};

/// One member, in the files' order of fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// `NAME@TEAM`
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub agent_id: String,
    /// Its plain name.
    pub name: AgentName,
    /// `team-lead`, `general-purpose` and the like; empty where others left it out.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub agent_type: String,
    /// Empty where nobody said.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub model: String,
    /// What it was spawned with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The name of one of our colours, or what others wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Whether it starts read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_mode_required: Option<bool>,
    /// Milliseconds since the epoch.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub joined_at: u64,
    /// `%14`, `in-process`, empty for a lead. For showing; never acted on.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub tmux_pane_id: String,
    /// Absolute.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub cwd: String,
    /// Reserved: always empty.
    #[serde(serialize_with = "serialize_empty_array")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    pub subscriptions: (),
    /// `tmux`, `in-process`, `iterm2`, or what others wrote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend_type: Option<String>,
    /// True in a turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Its git worktree. For showing; never acted on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worktree_path: Option<String>,
    /// Its permission mode, where that was changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
}

/// What a teammate's entry is made of.
#[derive(Debug, Clone)]
pub struct TeammateEntry {
    /// Its name.
    pub name: AgentName,
    /// `general-purpose` unless given.
    pub agent_type: Option<String>,
    /// Empty if nobody said.
    pub model: String,
    /// What it is to do.
    pub prompt: String,
    /// Tells it apart.
    pub color: Color,
    /// Whether it starts read-only.
    pub plan_mode_required: bool,
    /// Milliseconds since the epoch.
    pub joined_at: u64,
    /// `%14` or `in-process`.
    pub tmux_pane_id: String,
    /// Absolute.
    pub cwd: String,
    /// `tmux`, `in-process` and the like.
    pub backend_type: String,
    /// Its git worktree, if it has one.
    pub worktree_path: Option<String>,
}

impl Member {
    /// It has to plan, and has not left its reading mode by the approval of a plan.
    pub fn is_planning(&self) -> bool {
        let left = self.mode.as_deref().is_some_and(|mode| mode != PermissionMode::Plan.as_str());
        self.plan_mode_required == Some(true) && !left
    }

    /// The lead of a new team.
    pub fn lead(
        team: &TeamName,
        agent_type: Option<String>,
        model: String,
        cwd: String,
        joined_at: u64,
    ) -> Member {
        let name = AgentName::lead();
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
        }
    }

    /// A teammate that starts its first turn.
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
        }
    }

    /// Looks into one element of `members`.
    pub(super) fn from_object(object: &Object) -> Result<Member, FieldError> {
        Ok(Member {
            agent_id: object.optional_string("agentId")?.unwrap_or_default(),
            name: AgentName::new_unchecked(&object.string("name")?),
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
        })
    }
}

fn serialize_empty_array<S: Serializer>(_: &(), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(std::iter::empty::<()>())
}
