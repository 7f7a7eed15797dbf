//! Compares an agent program's settings file, in JSON or TOML, with a template. The template is in
//! the program's profile, and has the settings that teamd needs. First, the paths of teamd's
//! programs are filled into the template. Then the comparison finds missing entries, and outdated
//! entries of an older installation of teamd.

use profile::required_program_settings::{OwnPrograms, fill_setting, is_teamd_setting};
use serde_json::Value;
use toml::{Table, Value as Template};

/// The value of a template with the paths of `own` filled in.
pub(super) fn fill_value(template: &Template, own: &OwnPrograms) -> Value {
    match template {
        Template::String(template) => Value::String(fill_setting(template, own)),
        Template::Integer(number) => (*number).into(),
        Template::Float(number) => (*number).into(),
        Template::Boolean(flag) => (*flag).into(),
        Template::Datetime(time) => Value::String(time.to_string()),
        Template::Array(values) => values.iter().map(|value| fill_value(value, own)).collect(),
        Template::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), fill_value(value, own))).collect()
        }
    }
}

/// The values of `templates` that the list `existing` does not contain.
pub(super) fn missing_values(templates: &[Template], existing: &[Value], own: &OwnPrograms) -> Vec<Value> {
    templates
        .iter()
        .map(|template| fill_value(template, own))
        .filter(|value| !existing.contains(value))
        .collect()
}

/// Whether an older release of teamd, or an installation at another path, has added `existing` to
/// the settings file. The entry then has the form of a template in `templates`, with another
/// content.
pub(super) fn is_outdated_entry(templates: &[Template], existing: &Value, own: &OwnPrograms) -> bool {
    templates
        .iter()
        .any(|template| is_teamd_entry(template, existing) && fill_value(template, own) != *existing)
}

/// Whether `existing` is an entry that an installation of teamd has made from the template. Only
/// numbers and the paths of teamd's programs may differ from the template.
fn is_teamd_entry(template: &Template, existing: &Value) -> bool {
    match (template, existing) {
        (Template::String(template), Value::String(existing)) => is_teamd_setting(template, existing),
        (Template::Integer(_) | Template::Float(_), Value::Number(_)) => true,
        (Template::Boolean(template), Value::Bool(existing)) => template == existing,
        (Template::Datetime(template), Value::String(existing)) => template.to_string() == *existing,
        (Template::Table(template), Value::Object(existing)) => {
            template.len() == existing.len()
                && template.iter().all(|(key, template_value)| {
                    existing.get(key).is_some_and(|existing| is_teamd_entry(template_value, existing))
                })
        }
        (Template::Array(template), Value::Array(existing)) => {
            template.len() == existing.len()
                && template
                    .iter()
                    .zip(existing)
                    .all(|(template, existing)| is_teamd_entry(template, existing))
        }
        _ => false,
    }
}

/// Whether the template's entry starts `teamctl`. Such an entry belongs to teamd, so its lists in
/// the settings file are replaced by those of the template. Lists in other entries may be the
/// user's, so they are only extended.
pub(super) fn starts_teamctl(template: &Table) -> bool {
    command_key(template).is_some()
}

/// Whether the template's entry starts `teamctl`, but `existing` starts another program. `existing`
/// is the entry with the same name in the settings file.
pub(super) fn starts_other_program(template: &Table, existing: &Value, own: &OwnPrograms) -> bool {
    let Some(key) = command_key(template) else { return false };
    if existing.as_object().is_some_and(serde_json::Map::is_empty) {
        return false;
    }
    let command = existing.get(key).and_then(|command| command.get(0).unwrap_or(command).as_str());
    let is_teamctl = |command: &str| command == own.teamctl || command.rsplit('/').next() == Some("teamctl");
    !command.is_some_and(is_teamctl)
}

/// The key whose value is the command `{teamctl}`.
fn command_key(template: &Table) -> Option<&str> {
    let is_command = |value: &Template| {
        let command = value.as_array().and_then(|elements| elements.first()).unwrap_or(value);
        command.as_str() == Some("{teamctl}")
    };
    template.iter().find(|(_, value)| is_command(value)).map(|(key, _)| key.as_str())
}

/// The error for [`starts_other_program`].
pub(super) fn name_taken_error(key: &str) -> String {
    format!("`{key}` exists already, and starts another program: give that one another name first")
}
