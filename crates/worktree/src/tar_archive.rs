//! Writes files and directories into a tar archive, and reads the archive again to verify it.

use crate::error::{Error, io_error};
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A file or directory that [`walk`] has found.
pub(crate) struct WalkedFile {
    /// Path, relative to the directory in which [`walk`] started.
    pub(crate) name: PathBuf,
    pub(crate) metadata: Metadata,
}

/// Lists `files`, and everything below the directories among them. All names are relative to
/// `root`. Missing files are left out.
///
/// Below the directories, entries for which `is_excluded` returns true are left out, with
/// everything below them.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn walk(
    root: &Path,
    files: &[PathBuf],
    is_excluded: &dyn Fn(&Path) -> bool,
) -> Result<Vec<WalkedFile>, Error> {
    let (mut pending, mut entries) = (files.to_vec(), Vec::new());
    while let Some(name) = pending.pop() {
        let path = root.join(&name);
        let metadata = match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(io_error("check", &path))?,
        };
        if metadata.is_dir() {
            for entry in path.read_dir().map_err(io_error("list", &path))? {
                let name = name.join(entry.map_err(io_error("list", &path))?.file_name());
                pending.extend((!is_excluded(&name)).then_some(name));
            }
        }
        entries.push(WalkedFile { name, metadata });
    }
    Ok(entries)
}

/// Writes a new archive of the files that [`walk`] returns. Returns whether the archive has any
/// entries.
///
/// Symbolic links are stored as links. Sockets, pipes and devices have no content and are left out.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn write_archive(
    root: &Path,
    files: &[PathBuf],
    archive: &Path,
    is_excluded: &dyn Fn(&Path) -> bool,
) -> Result<bool, Error> {
    let mut builder = tar::Builder::new(create_new_file(archive)?);
    builder.follow_symlinks(false);
    let mut count = 0;
    for WalkedFile { name, metadata } in walk(root, files, is_excluded)? {
        let kind = metadata.file_type();
        if !name.as_os_str().is_empty() && (kind.is_dir() || kind.is_file() || kind.is_symlink()) {
            let path = root.join(&name);
            builder.append_path_with_name(&path, &name).map_err(io_error("save", &path))?;
            count += 1;
        }
    }
    builder.into_inner().and_then(|mut file| file.flush()).map_err(io_error("write", archive))?;
    verify_archive(archive, count)?;
    Ok(count > 0)
}

/// Checks that the archive has `expected_count` entries and that all entries can be read.
///
/// # Errors
///
/// [`Error::Io`].
fn verify_archive(archive: &Path, expected_count: usize) -> Result<(), Error> {
    let mut reader = tar::Archive::new(File::open(archive).map_err(io_error("read", archive))?);
    let mut actual_count = 0;
    for entry in reader.entries().map_err(io_error("read", archive))? {
        let mut entry = entry.map_err(io_error("read", archive))?;
        std::io::copy(&mut entry.by_ref(), &mut std::io::sink()).map_err(io_error("read", archive))?;
        actual_count += 1;
    }
    if actual_count == expected_count {
        return Ok(());
    }
    let incomplete = std::io::Error::new(std::io::ErrorKind::InvalidData, "entries are missing");
    Err(io_error("read", archive)(incomplete))
}

/// Creates a file for writing. Fails if the file exists.
///
/// # Errors
///
/// [`Error::Io`].
pub(crate) fn create_new_file(path: &Path) -> Result<File, Error> {
    failpoint::hit_before_call("worktree.archive").map_err(io_error("create", path))?;
    File::options().create_new(true).read(true).write(true).open(path).map_err(io_error("create", path))
}
