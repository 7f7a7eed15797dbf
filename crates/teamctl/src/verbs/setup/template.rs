//! What a file of settings must hold, however it is written: a profile's template with our own program filled in.

use crate::profile::setup::{is_like, text};
use serde_json::Value;
use toml::Value as Template;

/// What `template` comes to for the program at `own`.
pub(super) fn filled(template: &Template, own: &str) -> Value {
    match template {
        Template::String(template) => Value::String(text(template, own)),
        Template::Integer(number) => (*number).into(),
        Template::Float(number) => (*number).into(),
        Template::Boolean(flag) => (*flag).into(),
        Template::Datetime(time) => Value::String(time.to_string()),
        Template::Array(all) => all.iter().map(|value| filled(value, own)).collect(),
        Template::Table(all) => all.iter().map(|(key, value)| (key.clone(), filled(value, own))).collect(),
    }
}

/// What `wanted` comes to and a list that holds `held` lacks.
pub(super) fn missing(wanted: &[Template], held: &[Value], own: &str) -> Vec<Value> {
    wanted.iter().map(|wanted| filled(wanted, own)).filter(|wanted| !held.contains(wanted)).collect()
}

/// Whether an older program of ours, or one at another place, put it there for one of `wanted`.
pub(super) fn is_stale(wanted: &[Template], held: &Value, own: &str) -> bool {
    wanted.iter().any(|wanted| is_ours(wanted, held) && filled(wanted, own) != *held)
}

/// Whether it is what we put there once, with another place of our program or other numbers.
fn is_ours(template: &Template, held: &Value) -> bool {
    match (template, held) {
        (Template::String(template), Value::String(held)) => is_like(template, held),
        (Template::Integer(_) | Template::Float(_), Value::Number(_)) => true,
        (Template::Boolean(template), Value::Bool(held)) => template == held,
        (Template::Datetime(template), Value::String(held)) => template.to_string() == *held,
        (Template::Table(template), Value::Object(held)) => {
            template.len() == held.len()
                && template
                    .iter()
                    .all(|(key, wanted)| held.get(key).is_some_and(|held| is_ours(wanted, held)))
        }
        (Template::Array(template), Value::Array(held)) => {
            template.len() == held.len()
                && template.iter().zip(held).all(|(template, held)| is_ours(template, held))
        }
        _ => false,
    }
}
