//! An inbox: a JSON array of messages, oldest first.
//!
//! Entries are kept as they are spelled. A message is a look into one; an entry that is none has its own
//! fault and does not disturb its neighbours. The text functions change what they name and nothing else.

use crate::json::{Array, FieldError, JsonError, Object, apply_edits};
use crate::name::AgentName;
use crate::timestamp::iso8601;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One message, as it is written: the order of the fields is the files' order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// The sender's plain name.
    pub from: String,
    /// Plain text, or a payload as JSON.
    pub text: String,
    /// What it is about, where the sender gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When it was sent: ISO 8601, UTC, milliseconds, `Z`.
    pub timestamp: String,
    /// The sender's colour, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Whether the recipient consumed it. A message without it is unread.
    #[serde(default)]
    pub read: bool,
}

impl Message {
    /// A new one, sent at `at_ms` (ms since the epoch), without summary and colour.
    pub fn new(from: &AgentName, text: String, at_ms: u64) -> Message {
        let timestamp = iso8601(at_ms);
        Message { from: from.to_string(), text, summary: None, timestamp, color: None, read: false }
    }
}

/// Why an entry is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// Not an object.
    #[error("{0}")]
    NotAnObject(String),
    /// An object with a field missing or of an unexpected type.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// One element of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// Its place in the file it was read from, from 0.
    pub index: usize,
    /// As it is spelled in the file.
    pub raw: String,
    /// What it says.
    pub message: Result<Message, EntryError>,
}

impl InboxEntry {
    /// Looks into one element.
    pub fn parse(index: usize, raw: &str) -> InboxEntry {
        InboxEntry { index, raw: raw.to_owned(), message: parse_message(raw) }
    }

    /// A message that its recipient has not consumed.
    pub fn unread(&self) -> Option<&Message> {
        self.message.as_ref().ok().filter(|message| !message.read)
    }

    /// Tells it from others, whoever spells it, and whether it is read or not. The same in every program of one build.
    pub fn message_id(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        match &self.message {
            Ok(message) => (&message.from, &message.timestamp, &message.text).hash(&mut hasher),
            Err(_) => self.raw.hash(&mut hasher),
        }
        hasher.finish()
    }
}

fn parse_message(raw: &str) -> Result<Message, EntryError> {
    let object = Object::parse(raw).map_err(|error| EntryError::NotAnObject(error.to_string()))?;
    Ok(Message {
        from: object.string("from")?,
        text: object.string("text")?,
        summary: object.optional_string("summary")?,
        timestamp: object.string("timestamp")?,
        color: object.optional_string("color")?,
        read: object.boolean("read")?.unwrap_or(false),
    })
}

/// All entries of an inbox's text.
pub fn parse_inbox(text: &str) -> Result<Vec<InboxEntry>, JsonError> {
    let array = Array::parse(text)?;
    Ok(array
        .elements()
        .iter()
        .enumerate()
        .map(|(index, element)| InboxEntry::parse(index, element.get()))
        .collect())
}

/// The inbox with `message` at its end.
pub fn with_message(text: &str, message: &Message) -> Result<String, JsonError> {
    with_messages(text, std::slice::from_ref(message))
}

/// The inbox with all of `messages` at its end, in their order.
pub fn with_messages(text: &str, messages: &[Message]) -> Result<String, JsonError> {
    if messages.is_empty() {
        return Ok(text.to_owned());
    }
    let array = Array::parse(text)?;
    Ok(apply_edits(text, vec![array.push_all(messages)]))
}

/// The inbox with each of `messages` before the entry at its place, in their order; at the end where there is none.
/// The places must be in order.
pub fn with_inserted(text: &str, messages: &[(usize, &Message)]) -> Result<String, JsonError> {
    let array = Array::parse(text)?;
    let end = messages.partition_point(|(place, _)| *place < array.elements().len());
    let (within, last) = messages.split_at(end);
    let mut edits: Vec<_> =
        within.iter().filter_map(|(place, message)| array.insert(*place, message)).collect();
    let last: Vec<&Message> = last.iter().map(|(_, message)| *message).collect();
    if !last.is_empty() {
        edits.push(array.push_all(&last));
    }
    Ok(apply_edits(text, edits))
}

/// The inbox with the entries at `indices` marked read. Others, and what is no object, stay as they are.
pub fn with_marked_read(text: &str, indices: &[usize]) -> Result<String, JsonError> {
    let array = Array::parse(text)?;
    let elements = array.elements();
    let mut indices: Vec<usize> = indices.iter().copied().filter(|index| *index < elements.len()).collect();
    indices.sort_unstable();
    indices.dedup();
    let mut edits = Vec::new();
    for index in indices {
        let Ok(object) = Object::from_raw(text, elements[index]) else { continue };
        if object.get("read").is_none_or(|read| read.get() != "true") {
            edits.extend(object.set(&[("read", Value::Bool(true))]));
        }
    }
    Ok(apply_edits(text, edits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Message {
        Message {
            from: "ann".into(),
            text: "a \"b\"\n🪜".into(),
            summary: None,
            timestamp: "2026-02-13T10:05:44.590Z".into(),
            color: Some("blue".into()),
            read: false,
        }
    }

    #[test]
    fn a_message_is_written_as_the_original_writes_it() {
        let expected = "[\n  {\n    \"from\": \"ann\",\n    \"text\": \"a \\\"b\\\"\\n🪜\",\n    \
            \"timestamp\": \"2026-02-13T10:05:44.590Z\",\n    \"color\": \"blue\",\n    \"read\": false\n  }\n]";
        let text = with_message("[]", &message()).unwrap();
        assert_eq!(text, expected);
        assert_eq!(parse_inbox(&text).unwrap()[0].message, Ok(message()));
    }

    #[test]
    fn messages_are_put_before_others_and_set_apart_like_them() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| Message { text: text.into(), ..message() });
        let all = with_messages("[]", &[a.clone(), b.clone(), c.clone(), d.clone()]).unwrap();
        let few = with_messages("[]", &[b.clone(), d.clone()]).unwrap();
        assert_eq!(with_inserted(&few, &[(0, &a), (1, &c)]).unwrap(), all);
        let last = with_message("[]", &d).unwrap();
        assert_eq!(with_inserted(&last, &[(0, &a), (0, &b), (0, &c)]).unwrap(), all);
        assert_eq!(with_inserted("[]", &[(0, &a), (0, &b), (0, &c), (0, &d)]).unwrap(), all);
        let compact = r#"[{"x":1},{"x":2}]"#;
        let said =
            |text: &str| parse_inbox(text).unwrap().into_iter().map(|entry| entry.raw).collect::<Vec<_>>();
        assert_eq!(said(&with_inserted(compact, &[(1, &a), (9, &b)]).unwrap()).len(), 4);
        assert_eq!(with_inserted(compact, &[]).unwrap(), compact);
    }

    #[test]
    fn an_entry_without_read_is_unread_and_gets_the_field_when_marked() {
        let text = "[\n  {\n    \"from\": \"a\",\n    \"text\": \"\",\n    \"timestamp\": \"\"\n  }\n]";
        assert!(parse_inbox(text).unwrap()[0].unread().is_some());
        let marked = with_marked_read(text, &[0, 0, 7]).unwrap();
        assert_eq!(marked, text.replace("\"\"\n  }", "\"\",\n    \"read\": true\n  }"));
    }
}
