//! Edits the text of a team's config.json, so that unknown fields and the format are kept.

use super::config::{ConfigError, members_array};
use super::member::Member;
use crate::format_preserving_json::{Array, Object, apply_edits};
use crate::team_and_member_names::MemberName;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashSet;

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
pub fn without_member(text: &str, name: &MemberName) -> Result<String, ConfigError> {
    without_first_matches(text, std::slice::from_ref(name))
}

/// Removes members from the config's text: for each name in `names`, the first member with this
/// name.
pub fn without_first_matches(text: &str, names: &[MemberName]) -> Result<String, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let mut remaining: HashSet<&MemberName> = names.iter().collect();
    Ok(apply_edits(
        text,
        members.remove_all(|raw| member_name(text, raw).is_some_and(|name| remaining.remove(&name))),
    ))
}

/// Removes all members with these names.
pub fn without_members(text: &str, names: &[MemberName]) -> Result<String, ConfigError> {
    let object = Object::parse(text)?;
    let members = members_array(text, &object)?;
    let names: HashSet<&MemberName> = names.iter().collect();
    Ok(apply_edits(
        text,
        members.remove_all(|raw| member_name(text, raw).is_some_and(|name| names.contains(&name))),
    ))
}

/// Sets `fields` of the member `name`. A null value removes the field. `None` if there is no such
/// member.
pub fn with_member_fields(
    text: &str,
    name: &MemberName,
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

fn member_index(text: &str, members: &Array, name: &MemberName) -> Option<usize> {
    members.elements().iter().position(|raw| member_name(text, raw).as_ref() == Some(name))
}

fn member_name(text: &str, member: &RawValue) -> Option<MemberName> {
    Object::from_raw(text, member).ok()?.string("name").ok().map(|name| MemberName::new_unchecked(&name))
}
