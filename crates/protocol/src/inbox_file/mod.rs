//! Messages in inbox files, and the JSON output of a single entry.

mod inbox_entry_to_json;
mod message_and_inbox_entry;
mod parse_and_edit_inbox_text;

pub use message_and_inbox_entry::{EntryError, InboxEntry, Message};
pub use parse_and_edit_inbox_text::{
    parse_inbox, with_inserted, with_marked_read, with_message, with_messages,
};
