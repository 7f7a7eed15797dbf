//! Everything sent to one agent. A send is one append, once and in order; what others wrote is not touched.
//! Reading takes no lock: at every instant the file is a complete array, or a foreign writer's that is waited
//! for.

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
