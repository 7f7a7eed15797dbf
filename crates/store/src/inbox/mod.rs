//! Inboxes: the messages sent to one member. Sending appends a message once and keeps all entries
//! that other programs wrote. Reading takes no lock, because teamd's programs never leave the file
//! incomplete. Other programs leave it incomplete for a moment while they write; the reader then
//! waits.

mod inbox_handle;
mod insert_positions_of_lost_messages;
pub(crate) mod message_id;
mod read_append_mark_read;
mod read_since_cursor;
mod tail_index;

pub use inbox_handle::Inbox;
pub use message_id::message_id;
pub use read_append_mark_read::{EntrySelection, LastEntries, MESSAGE_LIMIT};
pub use read_since_cursor::InboxCursor;

pub(crate) use read_append_mark_read::ANSWER_LIMIT;
