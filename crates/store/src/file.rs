//! The one way to read and to replace a file.
//!
//! A change is prepared first: read, build, temporary file in the same directory, flushed as the durability
//! asks. Then, for well under a millisecond: lock, see that the original is still the one that was read,
//! rename, unlock. Old foreign writers give up at once on a held lock and lose their message, so nothing that
//! takes time happens under it, unless others were faster three times over.

mod array_reader;
mod multigrain_timestamps;
mod read_modify_write;
mod snapshot;
mod tail_rewrite;
mod temp_file;
mod write_lease;

pub(crate) use array_reader::{ArrayReadError, ArrayReader};
pub(crate) use multigrain_timestamps::has_multigrain_timestamps as stamps_are_fine;
pub(crate) use read_modify_write::{MAX_ATTEMPTS, PreparedChange, UNLOCKED_ATTEMPTS, modify_file};
pub(crate) use snapshot::{
    FileSnapshot, FileVersion, HALF_WRITTEN_TIMEOUT, half_written_backoff, open_for_reading, read,
    read_and_parse, read_raw,
};
pub(crate) use tail_rewrite::{KnownFile, LongFile, SwapOutcome};
pub(crate) use temp_file::{
    SHADOW_SUFFIX, TEMP_INFIX, TempFile, append, append_if_fits, append_line, overwrite, rename,
    rename_noreplace, sync_dir, write_file, write_file_with_mode,
};

use crate::Durability;
use crate::corrupt_backup::CorruptBackups;
use protocol::json;

/// The most bytes of an inbox.
pub(crate) const INBOX_LIMIT: u64 = 256 << 20;
/// The most bytes of any other file.
pub(crate) const FILE_LIMIT: u64 = 8 << 20;

/// What a file's text must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonShape {
    /// An inbox.
    Array,
    /// A config or a task.
    Object,
}

impl JsonShape {
    pub(crate) fn check(self, text: &str) -> Result<(), json::JsonError> {
        match self {
            JsonShape::Array => json::Array::parse(text).map(drop),
            JsonShape::Object => json::Object::parse(text).map(drop),
        }
    }

    pub(crate) fn limit(self) -> u64 {
        match self {
            JsonShape::Array => INBOX_LIMIT,
            JsonShape::Object => FILE_LIMIT,
        }
    }
}

/// What all reads and writes of one root share.
#[derive(Debug)]
pub(crate) struct IoContext {
    /// What a write waits for.
    pub(crate) durability: Durability,
    /// Where copies of damaged files go.
    pub(crate) backups: CorruptBackups,
}
