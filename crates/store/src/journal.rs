//! The journal: teamd's own record of each inbox, outside the root. A foreign writer may replace an
//! inbox by an older version, without a message that teamd appended. From the journal, the daemon
//! finds such messages and restores each of them once ([`InboxReconciler`]).
//!
//! Each team has one file, to which lines are only appended. A sender records a message after it
//! has stored it. A reader records entries before it marks them read. A sender that is killed
//! before it records the message has not acknowledged the send.
//!
//! Recording is best effort, because the message is already stored. An error would make the sender
//! send the message twice. Records are not flushed to the disk.

mod entry;
mod journal_entries;
mod reconciler;
pub(crate) mod storage;

pub use reconciler::{InboxChange, InboxReconciler, ReaderKind};
