//! Edits the text of a task file. All parts of the text that the edit does not name are kept.

use super::task_and_task_status::TaskError;
use crate::format_preserving_json::{FieldError, Object, apply_edits};
use serde_json::{Map, Value};

/// Sets each field of the task in `text`. `None` as a value removes the field.
pub fn with_fields(text: &str, fields: &[(&str, Option<Value>)]) -> Result<String, TaskError> {
    let mut edited = text.to_owned();
    for (field, value) in fields {
        let object = Object::parse(&edited)?;
        let edits = match value {
            Some(value) => object.set(&[(field, value.clone())]),
            None => object.remove(field).into_iter().collect(),
        };
        edited = apply_edits(&edited, edits);
    }
    Ok(edited)
}

/// Merges `changes` into the metadata of the task in `text`. A null value removes the key.
pub fn with_metadata(text: &str, changes: &Map<String, Value>) -> Result<String, TaskError> {
    let object = Object::parse(text)?;
    if object.non_null("metadata").is_none() {
        let added = changes.iter().filter(|(_, value)| !value.is_null());
        let added: Map<String, Value> = added.map(|(key, value)| (key.clone(), value.clone())).collect();
        return with_fields(text, &[("metadata", (!added.is_empty()).then_some(Value::Object(added)))]);
    }
    let mut merged = text.to_owned();
    for (key, value) in changes {
        merged = with_metadata_key(&merged, key, value)?;
    }
    Ok(merged)
}

fn with_metadata_key(text: &str, key: &str, value: &Value) -> Result<String, TaskError> {
    let object = Object::parse(text)?;
    let found = object.get("metadata");
    let metadata = found.and_then(|raw| Object::from_raw(text, raw).ok());
    let metadata = metadata.ok_or_else(|| FieldError::new("metadata", "an object", found))?;
    let edits = match value {
        Value::Null => metadata.remove(key).into_iter().collect(),
        value => metadata.set(&[(key, value.clone())]),
    };
    Ok(apply_edits(text, edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_merged() {
        let merged =
            |text: &str, changes: &str| with_metadata(text, &serde_json::from_str(changes).unwrap()).unwrap();
        let text = r#"{"id":"1","metadata":{"a":1e999,"b":2}}"#;
        let expected = r#"{"id":"1","metadata":{"a":1e999,"c":3}}"#;
        assert_eq!(merged(text, r#"{"b":null,"c":3,"d":null}"#), expected);
        assert_eq!(merged(r#"{"id":"1"}"#, r#"{"x":1,"y":null}"#), r#"{"id":"1","metadata":{"x":1}}"#);
        assert_eq!(merged(r#"{"id":"1"}"#, r#"{"y":null}"#), r#"{"id":"1"}"#);
    }

    #[test]
    fn edit_keeps_other_fields() {
        let text = r#"{"id":"1","future":1000.0,"status":"pending","owner":""}"#;
        let fields =
            [("status", Some(Value::from("completed"))), ("owner", None), ("new", Some(Value::from(1)))];
        let expected = r#"{"id":"1","future":1000.0,"status":"completed","new":1}"#;
        assert_eq!(with_fields(text, &fields).unwrap(), expected);
    }
}
