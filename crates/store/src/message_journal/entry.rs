//! One entry (line) of the journal.

use crate::error::Error;
use crate::inbox::message_id::entry_uuid;
use crate::state_directory_handle::StateDir;
use protocol::inbox_file::{InboxEntry, Message};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// A record about one inbox.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    /// The name of the inbox's file.
    pub(super) inbox_file: String,
    /// The generation of the inboxes directory, which distinguishes teams of the same name.
    pub(super) generation: u64,
    /// Whether a rotation of the journal has copied this entry from the previous journal file.
    /// Copied entries are older than all other entries in the file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_carried_over: bool,
    #[serde(flatten)]
    pub(super) kind: JournalEntryKind,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum JournalEntryKind {
    /// This message was stored in the inbox.
    Sent(Message),
    /// The owner of the inbox has read the messages with these ids.
    Read(Vec<String>),
    /// The messages with these ids were missing and were restored.
    Restored(Vec<String>),
    /// Says that no more messages are restored in this inbox. The program that reads the inbox was
    /// found to remove messages after reading them, so a missing message is probably not lost.
    ReaderRemoves {},
    /// A new member now has the inbox's name. Earlier messages are not for that member.
    NameReused {},
}

impl JournalEntry {
    /// The entry as a line of the journal, with a line feed before and after the text. So the entry
    /// never continues an incomplete line that a crash left.
    pub(super) fn to_line(&self) -> String {
        let text = serde_json::to_string(self).expect("a journal entry can always be written as JSON");
        format!("\n{text}\n")
    }
}

/// The id of an inbox entry. Marking the entry read does not change the id.
pub(super) fn entry_id(entry: &InboxEntry) -> String {
    entry_uuid(entry).simple().to_string()
}

/// The id of a message, the same as that of its inbox entry.
pub(super) fn message_id(message: &Message) -> String {
    crate::inbox::message_id::message_id(message)
}

/// Parses the entries of a journal file. Lines that are not valid entries are skipped.
pub(super) fn parse_lines(bytes: &[u8]) -> impl Iterator<Item = JournalEntry> + '_ {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// Reads a whole journal file. The size is not limited here, since concurrent writers may exceed
/// the limit for journal files a little.
pub(super) fn read_file(dir: &StateDir, part: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    if let Some(mut file) = dir.open_file(part)? {
        let read = file.read_to_end(&mut bytes);
        read.map_err(|cause| Error::io("read", &dir.path().join(part), cause))?;
    }
    Ok(bytes)
}
