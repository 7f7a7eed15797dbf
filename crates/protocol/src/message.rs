//! Messages of an inbox: its text, and one entry as JSON for output.

mod entry_json;
mod inbox_text;

pub use inbox_text::{
    EntryError, InboxEntry, Message, parse_inbox, with_inserted, with_marked_read, with_message,
    with_messages,
};
