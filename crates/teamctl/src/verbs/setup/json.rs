//! What is needed, put into a JSON text: nothing else in it is touched.

use crate::profile::setup::{is_like, text};
use protocol::json::{Array, Edit, Object, apply};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toml::Table;

/// `held` with all of `template` in it; why not, in words.
pub(super) fn merged(held: &str, template: &Table, own: &str) -> Result<String, String> {
    let template = serde_json::to_value(template).map_err(|error| error.to_string())?;
    let held = if held.trim().is_empty() { "{}\n" } else { held };
    // What an older program of ours left goes first, one after the other: two that stand side by side share a comma.
    let mut text = held.to_owned();
    loop {
        let cleaned = edited(&text, &template, own, Pass::TakeOut)?;
        if cleaned == text {
            return edited(&text, &template, own, Pass::PutIn);
        }
        text = cleaned;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    TakeOut,
    PutIn,
}

fn edited(held: &str, template: &Value, own: &str, pass: Pass) -> Result<String, String> {
    let object = Object::parse(held).map_err(|error| error.to_string())?;
    let mut edits = Vec::new();
    let empty = Map::new();
    in_object(held, &object, template.as_object().unwrap_or(&empty), own, pass, &mut edits)?;
    Ok(apply(held, edits))
}

fn in_object(
    root: &str,
    object: &Object<'_>,
    template: &Map<String, Value>,
    own: &str,
    pass: Pass,
    edits: &mut Vec<Edit>,
) -> Result<(), String> {
    let mut set = Vec::new();
    for (key, wanted) in template {
        match (object.get(key), wanted) {
            (None, wanted) => set.push((key.as_str(), filled(wanted, own))),
            (Some(there), Value::Object(wanted)) => {
                let inner = Object::within(root, there).map_err(|error| format!("{key}: {error}"))?;
                in_object(root, &inner, wanted, own, pass, edits)?;
            }
            (Some(there), Value::Array(wanted)) => in_array(root, there, key, wanted, own, pass, edits)?,
            (Some(there), wanted) => {
                let wanted = filled(wanted, own);
                if protocol::json::value(there) != wanted {
                    set.push((key.as_str(), wanted));
                }
            }
        }
    }
    if pass == Pass::PutIn && !set.is_empty() {
        edits.extend(object.set(&set));
    }
    Ok(())
}

fn in_array(
    root: &str,
    there: &RawValue,
    key: &str,
    wanted: &[Value],
    own: &str,
    pass: Pass,
    edits: &mut Vec<Edit>,
) -> Result<(), String> {
    let array = Array::within(root, there).map_err(|error| format!("{key}: {error}"))?;
    let held: Vec<Value> = array.elements().iter().map(|element| protocol::json::value(element)).collect();
    if pass == Pass::TakeOut {
        let stale = held
            .iter()
            .position(|held| wanted.iter().any(|wanted| like(wanted, held) && filled(wanted, own) != *held));
        edits.extend(stale.and_then(|at| array.remove(at)));
        return Ok(());
    }
    let missing: Vec<Value> =
        wanted.iter().map(|wanted| filled(wanted, own)).filter(|wanted| !held.contains(wanted)).collect();
    if !missing.is_empty() {
        edits.push(array.push_all(&missing));
    }
    Ok(())
}

/// Whether it is what we put there once, with another place of our program or other numbers.
fn like(template: &Value, held: &Value) -> bool {
    match (template, held) {
        (Value::String(template), Value::String(held)) => is_like(template, held),
        (Value::Number(_), Value::Number(_)) => true,
        (Value::Object(template), Value::Object(held)) => {
            template.len() == held.len()
                && template.iter().all(|(key, wanted)| held.get(key).is_some_and(|held| like(wanted, held)))
        }
        (Value::Array(template), Value::Array(held)) => {
            template.len() == held.len()
                && template.iter().zip(held).all(|(template, held)| like(template, held))
        }
        (template, held) => template == held,
    }
}

fn filled(template: &Value, own: &str) -> Value {
    match template {
        Value::String(template) => Value::String(text(template, own)),
        Value::Array(all) => all.iter().map(|value| filled(value, own)).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), filled(value, own))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "[mcp.team]\ncommand = \"{self}\"\nargs = [\"mcp\"]\n[[hooks.Stop]]\n\
                            hooks = [{ command = \"{self_sh} hook turn-end\", timeout = 600 }]\n";

    fn merge(held: &str, own: &str) -> Result<String, String> {
        merged(held, &TEMPLATE.parse().unwrap(), own)
    }

    #[test]
    fn an_empty_file_gets_all_of_it_and_a_second_time_nothing() {
        for empty in ["", "{}", " \n"] {
            let once = merge(empty, "/a b/teamctl").unwrap();
            let value: Value = serde_json::from_str(&once).unwrap();
            assert_eq!(value["mcp"]["team"]["command"], "/a b/teamctl");
            assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "'/a b/teamctl' hook turn-end");
            assert_eq!(merge(&once, "/a b/teamctl").unwrap(), once);
        }
    }

    #[test]
    fn everything_else_stays_byte_for_byte() {
        let held = "{\n    \"n\": 1e5, \"mcp\": {\"other\": {\"command\":\"x\"}},\n    \"hooks\": {\n        \"Stop\": [ {\"hooks\": []} ]\n    }\n}\n";
        let once = merge(held, "/teamctl").unwrap();
        for kept in ["\"n\": 1e5", "\"other\": {\"command\":\"x\"}", "{\"hooks\": []}"] {
            assert!(once.contains(kept), "{once}");
        }
        let value: Value = serde_json::from_str(&once).unwrap();
        assert_eq!(value["hooks"]["Stop"].as_array().unwrap().len(), 2);
        assert_eq!(merge(&once, "/teamctl").unwrap(), once);
    }

    #[test]
    fn ours_stands_there_once_when_our_program_has_moved() {
        let once = merge("", "/old/teamctl").unwrap();
        let moved: Value = serde_json::from_str(&merge(&once, "/new/teamctl").unwrap()).unwrap();
        assert_eq!(moved["hooks"]["Stop"].as_array().unwrap().len(), 1, "{moved:#}");
        assert_eq!(moved["hooks"]["Stop"][0]["hooks"][0]["command"], "/new/teamctl hook turn-end");
        assert_eq!(moved["mcp"]["team"]["command"], "/new/teamctl");
    }

    #[test]
    fn what_does_not_parse_or_is_something_else_is_told() {
        for broken in ["{", "// a comment\n{}", "[]", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": 1}}"] {
            assert!(merge(broken, "/teamctl").is_err(), "{broken}");
        }
    }
}
