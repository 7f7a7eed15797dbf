//! Inboxes: the messages sent to one member. Sending appends a message once and keeps all entries
//! that other programs wrote. Reading takes no lock, because teamd's programs never leave the file
//! incomplete. Other programs leave it incomplete for a moment while they write; the reader then
//! waits.

mod cursor;
mod inbox_handle;
pub(crate) mod message_id;
mod operations;
mod restore_positions;
mod tail_index;

pub use cursor::InboxCursor;
pub use inbox_handle::Inbox;
pub use message_id::message_id;
pub use operations::{EntrySelection, LastEntries, MESSAGE_LIMIT};

pub(crate) use operations::ANSWER_LIMIT;
