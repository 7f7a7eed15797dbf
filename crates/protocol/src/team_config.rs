//! Parses and edits a team's config.json: the team's settings and its current members.
//!
//! Missing optional fields are accepted, because other programs omit them. If a known field has the
//! wrong type, the error names the field. Edits change the text of the file, so that unknown fields
//! are kept.

mod member;

pub use member::{Member, TeammateEntry};

use crate::json::{Array, FieldError, JsonError, Object, apply_edits};
use crate::name::AgentName;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;

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
    pub fn member(&self, name: &AgentName) -> Option<&Member> {
        self.members.iter().find(|member| member.name == *name)
    }
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

fn members_array<'a>(text: &'a str, object: &Object<'a>) -> Result<Array<'a>, FieldError> {
    let value = object.get("members");
    let array = value.and_then(|value| Array::from_raw(text, value).ok());
    array.ok_or_else(|| FieldError::new("members", "an array", value))
}

/// Appends `member` to the members.
pub fn with_member(text: &str, member: &Member) -> Result<String, ConfigError> {
    with_members(text, &[member])
}

/// Appends `added` to the members in their order.
pub fn with_members(text: &str, added: &[&Member]) -> Result<String, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let edits = if added.is_empty() { Vec::new() } else { vec![members.push_all(added)] };
    Ok(apply_edits(text, edits))
}

/// Removes the first member with this name. The text is unchanged if there is none.
pub fn without_member(text: &str, name: &AgentName) -> Result<String, ConfigError> {
    without_first_matches(text, std::slice::from_ref(name))
}

/// Removes members from the config's text: for each name in `names`, the first member with this
/// name.
pub fn without_first_matches(text: &str, names: &[AgentName]) -> Result<String, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let mut remaining: HashSet<&AgentName> = names.iter().collect();
    Ok(apply_edits(
        text,
        members.remove_all(|raw| member_name(text, raw).is_some_and(|name| remaining.remove(&name))),
    ))
}

/// Removes all members with these names.
pub fn without_members(text: &str, names: &[AgentName]) -> Result<String, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let names: HashSet<&AgentName> = names.iter().collect();
    Ok(apply_edits(
        text,
        members.remove_all(|raw| member_name(text, raw).is_some_and(|name| names.contains(&name))),
    ))
}

/// Sets `fields` of the member `name`. A null value removes the field. `None` if there is no such
/// member.
pub fn with_member_fields(
    text: &str,
    name: &AgentName,
    fields: &[(&str, Value)],
) -> Result<Option<String>, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let Some(index) = member_index(text, &members, name) else { return Ok(None) };
    let find = |text: &str| -> Result<usize, ConfigError> {
        let object = Object::parse(text)?;
        let members = members_array(text, &object)?;
        Ok(member_index(text, &members, name).unwrap_or(index))
    };
    let mut edited = text.to_owned();
    for (field, value) in fields {
        let index = find(&edited)?;
        edited = with_member_field(&edited, index, field, value)?;
    }
    Ok(Some(edited))
}

fn with_member_field(text: &str, index: usize, field: &str, value: &Value) -> Result<String, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let member = Object::from_raw(text, members.elements()[index])?;
    Ok(with_field(text, &member, field, value))
}

/// Sets `fields` of the team itself. A null value removes the field.
pub fn with_team_fields(text: &str, fields: &[(&str, Value)]) -> Result<String, ConfigError> {
    let mut edited = text.to_owned();
    for (field, value) in fields {
        edited = with_field(&edited, &Object::parse(&edited)?, field, value);
    }
    Ok(edited)
}

fn with_field(text: &str, object: &Object, field: &str, value: &Value) -> String {
    let edits = match value {
        Value::Null => object.remove(field).into_iter().collect(),
        value => object.set(&[(field, value.clone())]),
    };
    apply_edits(text, edits)
}

fn member_index(text: &str, members: &Array, name: &AgentName) -> Option<usize> {
    members.elements().iter().position(|raw| member_name(text, raw).as_ref() == Some(name))
}

fn member_name(text: &str, member: &RawValue) -> Option<AgentName> {
    Object::from_raw(text, member).ok()?.string("name").ok().map(|name| AgentName::new_unchecked(&name))
}
