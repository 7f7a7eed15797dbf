//! The one way to read and to replace a file.
//!
//! A change is prepared first: read, build, temporary file in the same directory, flushed as the durability
//! asks. Then, for well under a millisecond: lock, see that the original is still the one that was read,
//! rename, unlock. Old foreign writers give up at once on a held lock and lose their message, so nothing that
//! takes time happens under it, unless others were faster three times over.

mod change;
mod end;
mod lease;
mod snapshot;
mod stamps;
mod temporary;
mod walk;

pub(crate) use change::{ATTEMPTS, Change, OPTIMISTIC, change};
pub(crate) use end::{Known, Long, Replaced};
pub(crate) use snapshot::{
    Identity, PATIENCE, Snapshot, half_written, open_for_reading, read, read_as, read_raw,
};
pub(crate) use stamps::are_fine as stamps_are_fine;
pub(crate) use temporary::{
    MARK, TWIN, Temporary, append, append_line, append_within, overwrite, place, place_as, rename,
    rename_fresh, settle,
};
pub(crate) use walk::{Odd, Walk};

use crate::Durability;
use crate::aside::Aside;
use protocol::json;

/// The most bytes of an inbox.
pub(crate) const INBOX_LIMIT: u64 = 256 << 20;
/// The most bytes of any other file.
pub(crate) const FILE_LIMIT: u64 = 8 << 20;

/// What a file's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An inbox.
    Array,
    /// A config or a task.
    Object,
}

impl Shape {
    pub(crate) fn check(self, text: &str) -> Result<(), json::JsonError> {
        match self {
            Shape::Array => json::Array::parse(text).map(drop),
            Shape::Object => json::Object::parse(text).map(drop),
        }
    }

    pub(crate) fn limit(self) -> u64 {
        match self {
            Shape::Array => INBOX_LIMIT,
            Shape::Object => FILE_LIMIT,
        }
    }
}

/// What all reads and writes of one root share.
#[derive(Debug)]
pub(crate) struct Way {
    /// What a write waits for.
    pub(crate) durability: Durability,
    /// Where copies of damaged files go.
    pub(crate) aside: Aside,
}
