//! Ids of messages: a hash of sender, timestamp and text. Marking a message read does not change
//! its id.

use protocol::inbox_file::{InboxEntry, Message};
use uuid::Uuid;

/// The id of an entry. For an entry that is not a valid message, a hash of its text.
pub(crate) fn entry_uuid(entry: &InboxEntry) -> Uuid {
    match &entry.message {
        Ok(message) => message_uuid(message),
        Err(_) => hash_bytes(entry.raw.as_bytes()),
    }
}

/// The id of a message, as hexadecimal digits. The copies of one message to several recipients have
/// the same id.
pub fn message_id(message: &Message) -> String {
    message_uuid(message).simple().to_string()
}

fn message_uuid(message: &Message) -> Uuid {
    hash_bytes(format!("{:?}", (&message.from, &message.timestamp, &message.text)).as_bytes())
}

pub(super) fn hash_bytes(bytes: &[u8]) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, bytes)
}
