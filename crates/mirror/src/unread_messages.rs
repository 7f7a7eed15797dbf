//! The unread messages of an inbox at the annex.

use std::collections::BTreeSet;

/// The unread messages of an inbox.
#[derive(Debug, Default)]
pub(crate) struct UnreadMessages {
    pub(crate) ids: BTreeSet<String>,
    /// The number of entries. Two equal messages have the same id.
    pub(crate) entries: usize,
}
