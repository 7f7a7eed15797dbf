//! The types of a team's config.json, and its parser.
//!
//! Missing optional fields are accepted, because other programs omit them. If a known field has the
//! wrong type, the error names the field.

use super::member::Member;
use crate::format_preserving_json::{Array, FieldError, JsonError, Object};
use crate::team_and_member_names::MemberName;
use serde::Serialize;
use serde_json::value::RawValue;

/// Why a text is not a team's config.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not JSON, or has the wrong type.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// A field of the team is missing or has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A field of a member is missing or has the wrong type.
    #[error("members[{index}]: {error}")]
    Member {
        /// Index of the member in the file, from 0.
        index: usize,
        /// The error.
        error: FieldError,
    },
}

/// A team. The order of its fields is their order in the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TeamConfig {
    /// The team's name in the file. The name of the team's directory takes precedence.
    pub name: String,
    /// What the team is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When the team was created, in milliseconds since the epoch.
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub created_at: u64,
    /// Id of the lead: `team-lead@TEAM`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub lead_agent_id: String,
    /// UUID of the lead's session.
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub lead_session_id: String,
    /// The members, the lead first.
    pub members: Vec<Member>,
    /// Ids of tmux panes that are currently hidden.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub hidden_pane_ids: Vec<String>,
}

impl TeamConfig {
    /// Parses a config.json.
    pub fn parse(text: &str) -> Result<TeamConfig, ConfigError> {
        let object = Object::parse(text)?;
        Ok(TeamConfig {
            name: object.string("name")?,
            description: object.optional_string("description")?,
            created_at: object.optional_integer("createdAt")?.unwrap_or(0),
            lead_agent_id: object.optional_string("leadAgentId")?.unwrap_or_default(),
            lead_session_id: object.optional_string("leadSessionId")?.unwrap_or_default(),
            members: parse_members(text, &object)?,
            hidden_pane_ids: object.strings("hiddenPaneIds")?,
        })
    }

    /// The content of a new config.json.
    pub fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("a config has string keys and no failing impl")
    }

    /// The member `name`. Case is ignored.
    pub fn member(&self, name: &MemberName) -> Option<&Member> {
        self.members.iter().find(|member| member.name == *name)
    }
}

/// Parses one entry of `members`.
///
/// # Errors
///
/// [`ConfigError`] if the text is not an object, or if a field has the wrong type.
pub fn parse_member(text: &str) -> Result<Member, ConfigError> {
    Ok(Member::from_object(&Object::parse(text)?)?)
}

fn parse_members(text: &str, object: &Object) -> Result<Vec<Member>, ConfigError> {
    let parsed = |(index, raw): (usize, &&RawValue)| {
        let object = Object::from_raw(text, raw)
            .map_err(|_| FieldError::new("member", "an object", Some(raw)))
            .and_then(|object| Member::from_object(&object));
        object.map_err(|error| ConfigError::Member { index, error })
    };
    members_array(text, object)?.elements().iter().enumerate().map(parsed).collect()
}

pub(super) fn members_array<'a>(text: &'a str, object: &Object<'a>) -> Result<Array<'a>, FieldError> {
    let value = object.get("members");
    let array = value.and_then(|value| Array::from_raw(text, value).ok());
    array.ok_or_else(|| FieldError::new("members", "an array", value))
}
