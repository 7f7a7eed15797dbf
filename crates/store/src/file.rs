//! The one way to read and to replace a file.
//!
//! A change is prepared first: read, build, temporary file in the same directory, flushed as the durability
//! asks. Then, for well under a millisecond: lock, see that the original is still the one that was read,
//! rename, unlock. Old foreign writers give up at once on a held lock and lose their message, so nothing that
//! takes time happens under it, unless others were faster three times over.

mod append;
mod array_reader;
mod corrupt_backup;
mod file_version;
mod io_context;
mod known_file;
mod multigrain_timestamps;
mod read_modify_write;
pub(crate) mod rename;
mod shape;
mod snapshot;
mod tail_rewrite;
mod temp_file;
mod write_lease;

pub(crate) use append::{append, append_if_fits, append_line, overwrite};
pub(crate) use array_reader::{ArrayReadError, ArrayReader};
pub(crate) use corrupt_backup::CorruptBackups;
pub(crate) use file_version::FileVersion;
pub(crate) use io_context::IoContext;
pub(crate) use known_file::KnownFile;
pub(crate) use multigrain_timestamps::has_multigrain_timestamps as stamps_are_fine;
pub(crate) use read_modify_write::{MAX_ATTEMPTS, PreparedChange, UNLOCKED_ATTEMPTS, modify_file};
pub(crate) use rename::rename;
pub(crate) use shape::{FILE_LIMIT, INBOX_LIMIT, JsonShape};
pub(crate) use snapshot::{
    FileSnapshot, HALF_WRITTEN_TIMEOUT, half_written_backoff, open_for_reading, read, read_and_parse,
    read_raw,
};
pub(crate) use tail_rewrite::{LongFile, SwapOutcome};
pub(crate) use temp_file::{SHADOW_SUFFIX, TEMP_INFIX, TempFile, sync_dir, write_file, write_file_with_mode};
