//! The journal: teamd's own record of each inbox, outside the root. Another program may replace an
//! inbox by an older version that lacks a message which teamd appended. With the journal, the
//! daemon finds such lost messages and restores each of them once ([`InboxReconciler`]).
//!
//! Each team has a journal file, to which lines are only appended, and the previous file, which it
//! replaced. A sender first stores its message in the inbox, then adds the message to the journal,
//! and then acknowledges the send. A reader adds entries to the journal before it marks them read.
//!
//! A failure to write the journal is ignored, because the message is already in the inbox. If the
//! sender got an error, it would send the message again. The journal is not flushed to the disk.

mod entry;
pub(crate) mod journal_and_tail_index_files;
mod restore_lost_messages;
mod team_journal;

pub use restore_lost_messages::{InboxChange, InboxReconciler, ReaderKind};
