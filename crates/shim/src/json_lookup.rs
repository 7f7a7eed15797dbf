//! Finds values in a line of JSON, by key or by path.

use serde_json::Value;

/// The first non-empty string under `key`, at any depth.
pub(crate) fn first_string(value: &Value, key: &str) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let own_text = fields.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
            let nested_text = || fields.values().find_map(|value| first_string(value, key));
            own_text.map(str::to_owned).or_else(nested_text)
        }
        Value::Array(elements) => elements.iter().find_map(|value| first_string(value, key)),
        _ => None,
    }
}

/// The last string under `key`, at any depth. If an object itself has a string under `key`, strings
/// deeper in this object are ignored.
pub(crate) fn last_string(value: &Value, key: &str) -> Option<String> {
    match value {
        Value::Object(fields) => {
            let nested_text = || fields.values().rev().find_map(|value| last_string(value, key));
            fields.get(key).and_then(Value::as_str).map(str::to_owned).or_else(nested_text)
        }
        Value::Array(elements) => elements.iter().rev().find_map(|value| last_string(value, key)),
        _ => None,
    }
}

/// All values at `path`: keys with dots between them, where `*` stands for every key.
pub(crate) fn values_at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    path.split('.').fold(vec![value], |values, key| match key {
        "*" => values.into_iter().filter_map(Value::as_object).flat_map(serde_json::Map::values).collect(),
        key => values.into_iter().filter_map(|value| value.get(key)).collect(),
    })
}
