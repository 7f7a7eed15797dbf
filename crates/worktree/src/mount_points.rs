//! Finds file systems that are mounted in a worktree. If git removed such a worktree, it would also
//! delete the files of the mounted file system.

use crate::error::{Error, io_error};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Returns the sorted mount points at `directory` and below it.
///
/// # Errors
///
/// [`Error::Io`] if the table of mounts or the directory cannot be read.
pub(crate) fn mount_points_below(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let directory = directory.canonicalize().map_err(io_error("find", directory))?;
    let mut mount_points = match platform::system().mount_points() {
        Err(error) if error.kind() == ErrorKind::Unsupported => directories_of_other_devices(&directory),
        result => result,
    }
    .map_err(io_error("list the mounts below", &directory))?;
    mount_points.retain(|mount| mount.starts_with(&directory));
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

/// Finds the mount points at and below `top`, on systems whose list of mounts teamd cannot read.
/// Returns each directory that has another device number than its parent directory. A directory
/// that is mounted at a second place on the same device (bind mount) is not found.
fn directories_of_other_devices(top: &Path) -> io::Result<Vec<PathBuf>> {
    let device = std::fs::metadata(top)?.dev();
    let is_mount_point = match top.parent() {
        Some(parent) => std::fs::metadata(parent)?.dev() != device,
        None => true,
    };
    let mut found: Vec<PathBuf> = is_mount_point.then(|| top.to_owned()).into_iter().collect();
    let mut unread = vec![top.to_owned()];
    while let Some(directory) = unread.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            match metadata.is_dir() {
                true if metadata.dev() != device => found.push(entry.path()),
                true => unread.push(entry.path()),
                false => {}
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_their_device() {
        let found = directories_of_other_devices(Path::new("/sys")).unwrap();
        assert!(found.contains(&PathBuf::from("/sys")) && found.len() > 1, "{found:?}");
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("a/b")).unwrap();
        assert_eq!(directories_of_other_devices(directory.path()).unwrap(), Vec::<PathBuf>::new());
    }
}
