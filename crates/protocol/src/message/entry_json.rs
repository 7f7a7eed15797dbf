//! One entry of an inbox as JSON, with its place and its kind: the entry as it is on disk, where that can be said on
//! one line in valid JSON, else what we understood of it; an entry that is no message says why.

use super::inbox_text::{InboxEntry, Message};
use crate::json::replace_lone_surrogates;
use crate::payload::Payload;
use serde_json::{Value, json};

impl InboxEntry {
    /// The entry with its `index` and `kind`; the kind of plain text is `message`.
    pub fn to_json(&self) -> Value {
        let mut object = entry_value(self);
        object["index"] = json!(self.index);
        match &self.message {
            Ok(message) => object["kind"] = json!(kind_name(message)),
            Err(fault) => {
                object["kind"] = json!("fault");
                object["fault"] = json!(fault.to_string());
            }
        }
        object
    }
}

fn entry_value(entry: &InboxEntry) -> Value {
    match (serde_json::from_str(&replace_lone_surrogates(&entry.raw)), &entry.message) {
        (Ok(object @ Value::Object(_)), _) => object,
        (_, Ok(message)) => json!(message),
        (_, Err(_)) => json!({"raw": entry.raw}),
    }
}

fn kind_name(message: &Message) -> &'static str {
    Payload::parse(&message.text).map_or("message", |payload| payload.type_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(raw: &str) -> Value {
        InboxEntry::parse(3, raw).to_json()
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
