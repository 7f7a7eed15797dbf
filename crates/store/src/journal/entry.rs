//! A line of the journal.

use crate::error::Error;
use crate::inbox::message_id::entry_uuid;
use crate::state_dir::StateDir;
use protocol::message::{InboxEntry, Message};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// What was noted of one inbox.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    /// The name of the inbox's file.
    #[serde(rename = "to")]
    pub(super) inbox_file: String,
    /// The directory that it was in, as `place` has it.
    #[serde(rename = "of")]
    pub(super) generation: u64,
    /// It was carried over from the file before, and is older than all of this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "old")]
    pub(super) is_carried_over: bool,
    #[serde(flatten)]
    #[serde(rename = "note")]
    pub(super) kind: JournalEntryKind,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum JournalEntryKind {
    /// It was stored, as it was written.
    Sent(Message),
    /// Its owner has these.
    Read(Vec<String>),
    /// These were missing, and are there again.
    #[serde(rename = "back")]
    Restored(Vec<String>),
    /// Whoever reads it takes out what it has had: nothing is put back any more.
    #[serde(rename = "taken")]
    ReaderRemoves {},
    /// The name is another's from here on.
    #[serde(rename = "retired")]
    NameReused {},
}

impl JournalEntry {
    /// With a line end on either side, so that it never goes on behind half of one that a crash left.
    pub(super) fn to_line(&self) -> String {
        let text = serde_json::to_string(self).expect("a note has nothing that JSON cannot hold");
        format!("\n{text}\n")
    }
}

/// What tells an entry from others, read or not.
pub(super) fn entry_id(entry: &InboxEntry) -> String {
    entry_uuid(entry).simple().to_string()
}

/// The same of a message that was sent.
pub(super) fn message_id(message: &Message) -> String {
    crate::inbox::message_id::message_id(message)
}

/// The lines of a part; what is no line is none.
pub(super) fn parse_lines(bytes: &[u8]) -> impl Iterator<Item = JournalEntry> + '_ {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// All of a part, whatever its size: of many who note at once each has seen that there is room.
pub(super) fn read_file(dir: &StateDir, part: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(mut file) = dir.open_file(part)? {
        let read = file.read_to_end(&mut bytes);
        read.map_err(|cause| Error::io("read", &dir.path().join(part), cause))?;
    }
    Ok(bytes)
}
