//! Reads and edits the text of an inbox: a JSON array of messages, oldest first.
//!
//! Each entry keeps its JSON text as it is in the file. If an entry is not a valid message, only
//! this entry has an error; the other entries can still be read. A function that edits the text
//! changes only the parts that the edit names.

use crate::inbox_message_payload::Payload;
use crate::json::{Array, FieldError, JsonError, Object, apply_edits};
use crate::team_and_member_names::AgentName;
use crate::timestamp::iso8601;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// One message. The order of its fields is their order in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// The sender's name, without a team.
    pub from: String,
    /// Plain text, or a payload as JSON.
    pub text: String,
    /// The sender's summary. `None` if the sender gave none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When the message was sent: ISO 8601, UTC, with milliseconds and `Z`.
    pub timestamp: String,
    /// The sender's color. `None` if the sender has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// Whether the recipient has read the message. A message without this key is unread.
    #[serde(default)]
    pub read: bool,
}

impl Message {
    /// A new unread message without summary and color. `at_ms` is the time of the message in
    /// milliseconds since the epoch.
    pub fn new(from: &AgentName, text: String, at_ms: u64) -> Message {
        let timestamp = iso8601(at_ms);
        Message { from: from.to_string(), text, summary: None, timestamp, color: None, read: false }
    }

    /// Whether this message repeats `earlier`, the previous message of the same sender: both have
    /// the same text. A payload never counts as a repetition.
    pub fn repeats(&self, earlier: &Message) -> bool {
        (&self.from, &self.text) == (&earlier.from, &earlier.text)
            && Payload::detect_type(&self.text).is_none()
    }
}

/// Why an inbox entry is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The entry is not an object. The text is the JSON error.
    #[error("{0}")]
    NotAnObject(String),
    /// A field of the entry is missing or has the wrong type.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// One element of an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxEntry {
    /// The entry's index in the file, from 0.
    pub index: usize,
    /// The entry's JSON as spelled in the file.
    pub raw: String,
    /// The parsed message, or why the entry is not a message.
    pub message: Result<Message, EntryError>,
}

impl InboxEntry {
    /// Parses one element of an inbox.
    pub fn parse(index: usize, raw: &str) -> InboxEntry {
        InboxEntry { index, raw: raw.to_owned(), message: parse_message(raw) }
    }

    /// The message, if the entry is a valid message that is unread.
    pub fn unread(&self) -> Option<&Message> {
        self.message.as_ref().ok().filter(|message| !message.read)
    }

    /// A hash that identifies the message. The hash does not depend on the JSON spelling or on the
    /// read flag. Programs of the same build compute the same hash.
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

/// Parses the text of an inbox into its entries.
pub fn parse_inbox(text: &str) -> Result<Vec<InboxEntry>, JsonError> {
    let array = Array::parse(text)?;
    Ok(array
        .elements()
        .iter()
        .enumerate()
        .map(|(index, element)| InboxEntry::parse(index, element.get()))
        .collect())
}

/// Appends `message` to the inbox.
pub fn with_message(text: &str, message: &Message) -> Result<String, JsonError> {
    with_messages(text, std::slice::from_ref(message))
}

/// Appends `messages` to the inbox in their order.
pub fn with_messages(text: &str, messages: &[Message]) -> Result<String, JsonError> {
    if messages.is_empty() {
        return Ok(text.to_owned());
    }
    let array = Array::parse(text)?;
    Ok(apply_edits(text, vec![array.push_all(messages)]))
}

/// Inserts messages into the inbox. Each message comes with an index and is inserted before the
/// entry at that index, or at the end if there is no such entry. `messages` must be sorted by
/// index.
pub fn with_inserted(text: &str, messages: &[(usize, &Message)]) -> Result<String, JsonError> {
    let array = Array::parse(text)?;
    let end = messages.partition_point(|(index, _)| *index < array.elements().len());
    let (within, last) = messages.split_at(end);
    let mut edits: Vec<_> =
        within.iter().filter_map(|(index, message)| array.insert(*index, message)).collect();
    let last: Vec<&Message> = last.iter().map(|(_, message)| *message).collect();
    if !last.is_empty() {
        edits.push(array.push_all(&last));
    }
    Ok(apply_edits(text, edits))
}

/// Marks the entries at `indices` as read. Entries that are no objects are left unchanged.
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
    fn message_is_written_as_claude_code_writes_it() {
        let expected = "[\n  {\n    \"from\": \"ann\",\n    \"text\": \"a \\\"b\\\"\\n🪜\",\n    \
            \"timestamp\": \"2026-02-13T10:05:44.590Z\",\n    \"color\": \"blue\",\n    \"read\": false\n  }\n]";
        let text = with_message("[]", &message()).unwrap();
        assert_eq!(text, expected);
        assert_eq!(parse_inbox(&text).unwrap()[0].message, Ok(message()));
    }

    #[test]
    fn inserted_messages_get_the_spacing_of_others() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|text| Message { text: text.into(), ..message() });
        let all = with_messages("[]", &[a.clone(), b.clone(), c.clone(), d.clone()]).unwrap();
        let few = with_messages("[]", &[b.clone(), d.clone()]).unwrap();
        assert_eq!(with_inserted(&few, &[(0, &a), (1, &c)]).unwrap(), all);
        let last = with_message("[]", &d).unwrap();
        assert_eq!(with_inserted(&last, &[(0, &a), (0, &b), (0, &c)]).unwrap(), all);
        assert_eq!(with_inserted("[]", &[(0, &a), (0, &b), (0, &c), (0, &d)]).unwrap(), all);
        let compact = r#"[{"x":1},{"x":2}]"#;
        let raw_entries =
            |text: &str| parse_inbox(text).unwrap().into_iter().map(|entry| entry.raw).collect::<Vec<_>>();
        assert_eq!(raw_entries(&with_inserted(compact, &[(1, &a), (9, &b)]).unwrap()).len(), 4);
        assert_eq!(with_inserted(compact, &[]).unwrap(), compact);
    }

    #[test]
    fn entry_without_read_flag_is_unread_and_gets_the_flag_when_marked() {
        let text = "[\n  {\n    \"from\": \"a\",\n    \"text\": \"\",\n    \"timestamp\": \"\"\n  }\n]";
        assert!(parse_inbox(text).unwrap()[0].unread().is_some());
        let marked = with_marked_read(text, &[0, 0, 7]).unwrap();
        assert_eq!(marked, text.replace("\"\"\n  }", "\"\",\n    \"read\": true\n  }"));
    }
}
