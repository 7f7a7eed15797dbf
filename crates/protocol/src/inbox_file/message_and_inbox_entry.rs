//! A message, and an entry of an inbox file. If an entry is not a valid message, only this entry
//! has an error; the other entries can still be read.

use crate::format_preserving_json::{FieldError, Object};
use crate::inbox_message_payload::Payload;
use crate::team_and_member_names::MemberName;
use crate::timestamp::iso8601;
use serde::{Deserialize, Serialize};
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
    pub fn new(from: &MemberName, text: String, at_ms: u64) -> Message {
        let timestamp = iso8601(at_ms);
        Message { from: from.to_string(), text, summary: None, timestamp, color: None, read: false }
    }

    /// Whether this message repeats `earlier`, the previous message of the same sender: both have
    /// the same text. A message with a payload (JSON as its text) is never a repetition.
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
