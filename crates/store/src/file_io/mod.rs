//! Reads and replaces the files of a root and teamd's own files.
//!
//! A change of a shared file has two phases. The first phase needs no lock: it reads the file,
//! builds the new content, and writes a temporary file in the same directory. The second phase
//! holds the lock for less than a millisecond. It checks that the file is unchanged and renames the
//! temporary file to the file's name.
//!
//! Older versions of Claude Code give up at once when the lock is held, and lose the message that
//! they wanted to store. So no slow work happens under the lock. The exception is the fourth
//! attempt and later: if other programs changed the file during three attempts, both phases run
//! under the lock.

mod append_only_file;
mod append_or_overwrite_beginning;
mod chunked_json_array_reader;
mod corrupt_backup;
mod durability_and_backup_options;
mod file_version;
mod json_type_and_size_limit;
mod last_written_version_and_shadow_copy;
mod read_modify_write;
mod read_with_version;
pub(crate) mod rename;
mod tail_rewrite;
mod write_via_temp_file;

pub use append_only_file::AppendOnlyFile;
pub(crate) use append_or_overwrite_beginning::{
    append, append_if_fits, append_line, append_whole_lines, overwrite,
};
pub(crate) use chunked_json_array_reader::{ArrayReadError, ArrayReader};
pub(crate) use corrupt_backup::CorruptBackups;
pub(crate) use durability_and_backup_options::IoOptions;
pub(crate) use file_version::FileVersion;
pub(crate) use json_type_and_size_limit::{FILE_LIMIT, INBOX_LIMIT, JsonShape};
pub(crate) use last_written_version_and_shadow_copy::{KnownFile, SHADOW_SUFFIX};
pub(crate) use read_modify_write::{MAX_ATTEMPTS, PreparedChange, UNLOCKED_ATTEMPTS, modify_file};
pub(crate) use read_with_version::{
    FileSnapshot, HALF_WRITTEN_TIMEOUT, check_size, half_written_backoff, open_for_reading, read,
    read_and_parse, read_foreign, read_raw,
};
pub(crate) use rename::rename;
pub(crate) use tail_rewrite::{LongFile, SwapOutcome};
pub(crate) use write_via_temp_file::{TEMP_INFIX, TempFile, sync_dir, write_file, write_file_with_mode};
