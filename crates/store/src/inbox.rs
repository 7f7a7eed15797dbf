//! Inboxes: the messages sent to one agent. Sending appends a message once and keeps all entries
//! that other programs wrote. Reading takes no lock: the file is always a complete array, unless a
//! foreign writer is in the middle of a write; then the reader waits.

mod cursor;
mod inbox_handle;
pub(crate) mod message_id;
mod messages;
mod restore;
mod tail_index;

pub use cursor::InboxCursor;
pub use inbox_handle::Inbox;
pub use message_id::message_id;
pub use messages::MESSAGE_LIMIT;

pub(crate) use messages::ANSWER_LIMIT;
