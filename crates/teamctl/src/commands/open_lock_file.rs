//! Opens the files by which processes lock something against each other.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a lock file, and creates it if it is missing. Its content stays.
pub(super) fn open_lock_file(path: &Path) -> std::io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}
