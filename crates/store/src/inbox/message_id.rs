//! The id of a message: what it says, whether it was read or not.

use protocol::message::{InboxEntry, Message};
use uuid::Uuid;

/// What an entry says, whether it was read or not: being read alone does not make it another.
pub(crate) fn entry_uuid(entry: &InboxEntry) -> Uuid {
    match &entry.message {
        Ok(message) => message_uuid(message),
        Err(_) => hash_bytes(entry.raw.as_bytes()),
    }
}

/// What tells a message from others, whoever spells it, and whether it is read or not: the same for each copy of one
/// that went to several.
pub fn message_id(message: &Message) -> String {
    message_uuid(message).simple().to_string()
}

/// The same of a message.
fn message_uuid(message: &Message) -> Uuid {
    hash_bytes(format!("{:?}", (&message.from, &message.timestamp, &message.text)).as_bytes())
}

pub(super) fn hash_bytes(bytes: &[u8]) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, bytes)
}
