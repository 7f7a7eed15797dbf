//! One entry of an inbox as JSON, with its place and its kind: the entry as it is on disk, where that can be said on
//! one line in valid JSON, else what we understood of it; an entry that is no message says why.

use super::{Entry, Message};
use crate::json::whole_pairs;
use crate::payload::Payload;
use serde_json::{Value, json};

impl Entry {
    /// The entry with its `index` and `kind`; the kind of plain text is `message`.
    pub fn with_kind(&self) -> Value {
        let mut object = as_it_is(self);
        object["index"] = json!(self.index);
        match &self.message {
            Ok(message) => object["kind"] = json!(kind(message)),
            Err(fault) => {
                object["kind"] = json!("fault");
                object["fault"] = json!(fault.to_string());
            }
        }
        object
    }
}

fn as_it_is(entry: &Entry) -> Value {
    match (serde_json::from_str(&whole_pairs(&entry.raw)), &entry.message) {
        (Ok(object @ Value::Object(_)), _) => object,
        (_, Ok(message)) => json!(message),
        (_, Err(_)) => json!({"raw": entry.raw}),
    }
}

fn kind(message: &Message) -> &'static str {
    Payload::parse(&message.text).map_or("message", |payload| payload.kind())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(raw: &str) -> Value {
        Entry::of(3, raw).with_kind()
    }

    #[test]
    fn an_entry_keeps_its_fields_and_gets_index_and_kind() {
        let entry = of(r#"{"from":"a","text":"hi","timestamp":"t","msgV":1}"#);
        assert_eq!(
            entry,
            json!({"from":"a","text":"hi","timestamp":"t","msgV":1,"index":3,"kind":"message"})
        );
    }

    #[test]
    fn what_no_json_value_can_hold_is_told_as_understood() {
        let entry = of(r#"{"from":"a","text":"hi","timestamp":"t","x":1e999}"#);
        assert_eq!((&entry["text"], &entry["read"]), (&json!("hi"), &json!(false)));
        let entry = of("null");
        assert_eq!((&entry["kind"], &entry["raw"]), (&json!("fault"), &json!("null")));
    }
}
