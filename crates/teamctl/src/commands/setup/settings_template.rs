//! What a file of settings must hold, however it is written: a profile's template with our own program filled in.

use profile::settings_patch::{OwnPrograms, fill_setting, is_teamd_setting};
use serde_json::Value;
use toml::{Table, Value as Template};

/// What `template` comes to for the program at `own`.
pub(super) fn fill_value(template: &Template, own: &OwnPrograms) -> Value {
    match template {
        Template::String(template) => Value::String(fill_setting(template, own)),
        Template::Integer(number) => (*number).into(),
        Template::Float(number) => (*number).into(),
        Template::Boolean(flag) => (*flag).into(),
        Template::Datetime(time) => Value::String(time.to_string()),
        Template::Array(all) => all.iter().map(|value| fill_value(value, own)).collect(),
        Template::Table(all) => {
            all.iter().map(|(key, value)| (key.clone(), fill_value(value, own))).collect()
        }
    }
}

/// What `wanted` comes to and a list that holds `held` lacks.
pub(super) fn missing_values(wanted: &[Template], held: &[Value], own: &OwnPrograms) -> Vec<Value> {
    wanted.iter().map(|wanted| fill_value(wanted, own)).filter(|wanted| !held.contains(wanted)).collect()
}

/// Whether an older program of ours, or one at another place, put it there for one of `wanted`.
pub(super) fn is_outdated_entry(wanted: &[Template], held: &Value, own: &OwnPrograms) -> bool {
    wanted.iter().any(|wanted| is_teamd_entry(wanted, held) && fill_value(wanted, own) != *held)
}

/// Whether it is what we put there once, with another place of our program or other numbers.
fn is_teamd_entry(template: &Template, held: &Value) -> bool {
    match (template, held) {
        (Template::String(template), Value::String(held)) => is_teamd_setting(template, held),
        (Template::Integer(_) | Template::Float(_), Value::Number(_)) => true,
        (Template::Boolean(template), Value::Bool(held)) => template == held,
        (Template::Datetime(template), Value::String(held)) => template.to_string() == *held,
        (Template::Table(template), Value::Object(held)) => {
            template.len() == held.len()
                && template
                    .iter()
                    .all(|(key, wanted)| held.get(key).is_some_and(|held| is_teamd_entry(wanted, held)))
        }
        (Template::Array(template), Value::Array(held)) => {
            template.len() == held.len()
                && template.iter().zip(held).all(|(template, held)| is_teamd_entry(template, held))
        }
        _ => false,
    }
}

/// Whether a table says how our own program is started: then all of it is ours, lists of words too, which else get only
/// what they lack.
pub(super) fn starts_teamctl(template: &Table) -> bool {
    command_key(template).is_some()
}

/// Whether `held`, in that table's place, starts another program: it is somebody else's server then.
pub(super) fn starts_other_program(template: &Table, held: &Value, own: &OwnPrograms) -> bool {
    let Some(key) = command_key(template) else { return false };
    if held.as_object().is_some_and(serde_json::Map::is_empty) {
        return false;
    }
    let command = held.get(key).and_then(|command| command.get(0).unwrap_or(command).as_str());
    let is_ours = |command: &str| command == own.teamctl || command.rsplit('/').next() == Some("teamctl");
    !command.is_some_and(is_ours)
}

/// Which of its keys holds the command.
fn command_key(template: &Table) -> Option<&str> {
    let is_us = |value: &Template| {
        let first = value.as_array().and_then(|words| words.first()).unwrap_or(value);
        first.as_str() == Some("{teamctl}")
    };
    template.iter().find(|(_, value)| is_us(value)).map(|(key, _)| key.as_str())
}

/// What is said where `starts_other_program`.
pub(super) fn name_taken_error(key: &str) -> String {
    format!("`{key}` is there already, and starts another program: give that one another name first")
}
