//! Messages in inbox files, and the JSON output of a single entry.

mod inbox_entry_to_json;
mod parse_and_edit_inbox_text;

pub use parse_and_edit_inbox_text::{
    EntryError, InboxEntry, Message, parse_inbox, with_inserted, with_marked_read, with_message,
    with_messages,
};
