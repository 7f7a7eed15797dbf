//! JSON output of an inbox entry, with its index and kind.
//!
//! The output has all fields of the entry in the file. If the entry cannot be converted to a JSON
//! value, for example because of the number 1e999, the output has only the fields that teamd knows.
//! If the entry is not a valid message, the output has the kind `invalid` and the error.

use super::message_and_inbox_entry::{InboxEntry, Message};
use crate::format_preserving_json::replace_lone_surrogates;
use crate::inbox_message_payload::Payload;
use serde_json::{Value, json};

impl InboxEntry {
    /// The entry as JSON, with the added keys `index` and `kind`. The kind is the `type` of the
    /// payload (JSON as the message's text), or `text` for plain text.
    pub fn to_json(&self) -> Value {
        let mut object = entry_value(self);
        object["index"] = json!(self.index);
        match &self.message {
            Ok(message) => object["kind"] = json!(kind_name(message)),
            Err(error) => {
                object["kind"] = json!("invalid");
                object["error"] = json!(error.to_string());
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
    Payload::parse(&message.text).map_or("text", |payload| payload.type_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry_json(raw: &str) -> Value {
        InboxEntry::parse(3, raw).to_json()
    }

    #[test]
    fn output_has_all_fields_and_index_and_kind() {
        let entry = entry_json(r#"{"from":"a","text":"hi","timestamp":"t","msgV":1}"#);
        assert_eq!(entry, json!({"from":"a","text":"hi","timestamp":"t","msgV":1,"index":3,"kind":"text"}));
    }

    #[test]
    fn output_of_an_unparsable_entry_has_the_known_fields() {
        let entry = entry_json(r#"{"from":"a","text":"hi","timestamp":"t","x":1e999}"#);
        assert_eq!((&entry["text"], &entry["read"]), (&json!("hi"), &json!(false)));
        let entry = entry_json("null");
        assert_eq!((&entry["kind"], &entry["raw"]), (&json!("invalid"), &json!("null")));
    }
}
