//! JSON objects as maps of fields, as the team files and the items have them.

use protocol::team_config::{Member, TeamConfig, parse_member};
use serde_json::{Map, Value};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The fields of a task file, of config.json, or of a member's entry.
pub(crate) type Fields = Map<String, Value>;

/// The fields of a config or of a member.
pub(crate) fn to_fields(value: &impl serde::Serialize) -> Fields {
    match serde_json::to_value(value) {
        Ok(Value::Object(fields)) => fields,
        other => unreachable!("a config and its members are objects: {other:?}"),
    }
}

/// A value as a line of a file.
pub(crate) fn json_line(value: &impl serde::Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("the maps in it have string keys");
    line.push(b'\n');
    line
}

/// The fields that differ, with their values in `to`. A field that is missing in `to` is null.
pub(crate) fn changed_fields(from: &Fields, to: &Fields) -> Vec<(String, Value)> {
    let changed = to.iter().filter(|(key, value)| from.get(*key) != Some(*value));
    let changed = changed.map(|(key, value)| (key.clone(), value.clone()));
    let removed = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    changed.chain(removed).collect()
}

/// Sets fields. Null removes a field.
pub(crate) fn set_fields(fields: &mut Fields, changed: &Fields) {
    for (key, value) in changed {
        match value {
            Value::Null => drop(fields.remove(key)),
            value => drop(fields.insert(key.clone(), value.clone())),
        }
    }
}

/// A hash of all fields, by which this process sees whether any field has changed. With many hosts,
/// a copy of the fields for each host would take gigabytes.
pub(crate) fn fingerprint(fields: &Fields) -> u64 {
    let mut hasher = DefaultHasher::new();
    fields.hash(&mut hasher);
    hasher.finish()
}

/// Parses a config from the home.
pub(crate) fn parse_config(fields: &Fields) -> Result<TeamConfig, String> {
    let text = Value::Object(fields.clone()).to_string();
    TeamConfig::parse(&text).map_err(|error| error.to_string())
}

/// Parses the entry of a member. `None` if it is invalid.
pub(crate) fn parse_entry(fields: &Fields) -> Option<Member> {
    parse_member(&Value::Object(fields.clone()).to_string()).ok()
}
