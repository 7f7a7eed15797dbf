//! Finds file systems that are mounted in a worktree. If git removed such a worktree, it would also
//! delete the files of the mounted file system.

use crate::error::{Error, io_error};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The table of mounts that this process sees.
const MOUNT_TABLE: &str = "/proc/self/mountinfo";

/// Returns the directories at which a file system is mounted: `directory` itself, and all below it.
/// They are sorted.
///
/// # Errors
///
/// [`Error::Io`] if the table of mounts or the directory cannot be read.
pub(crate) fn mount_points_below(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let directory = directory.canonicalize().map_err(io_error("find", directory))?;
    let table = std::fs::read(MOUNT_TABLE).map_err(io_error("read", Path::new(MOUNT_TABLE)))?;
    let mut mount_points: Vec<PathBuf> = table
        .split(|byte| *byte == b'\n')
        .filter_map(parse_mount_point)
        .filter(|mount| mount.starts_with(&directory))
        .collect();
    mount_points.sort();
    Ok(mount_points)
}

/// Checks that nothing is mounted at `directory` or below it.
///
/// # Errors
///
/// [`Error::MountPoint`] with the first mount point.
pub(crate) fn check_no_mount_point(directory: &Path) -> Result<(), Error> {
    match mount_points_below(directory)?.into_iter().next() {
        Some(mount) => Err(Error::MountPoint { worktree: directory.to_owned(), mount }),
        None => Ok(()),
    }
}

/// Returns the mount point in a line of the table, which is the fifth field. In the table, special
/// characters are octal escapes: for example, a blank is `\040`.
fn parse_mount_point(line: &[u8]) -> Option<PathBuf> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut path = Vec::new();
    let mut input = field;
    while let Some((byte, remaining_bytes)) = input.split_first() {
        let escaped_byte = (*byte == b'\\').then(|| remaining_bytes.get(..3).and_then(octal)).flatten();
        path.push(escaped_byte.unwrap_or(*byte));
        input = if escaped_byte.is_some() { &remaining_bytes[3..] } else { remaining_bytes };
    }
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::ffi::OsStr::from_bytes(digits).to_str()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_point_with_blanks_is_parsed() {
        let line = b"36 35 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 - ext3 /dev/root rw";
        assert_eq!(parse_mount_point(line), Some(PathBuf::from("/a b\\c")));
        assert_eq!(parse_mount_point(b"36 35 98:0 /"), None);
        assert_eq!(parse_mount_point(b"36 35 98:0 / /x\\04"), Some(PathBuf::from("/x\\04")));
    }
}
