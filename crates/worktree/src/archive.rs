//! Files and whole directories in an archive, each as it lies there: looked at, written, and read again.

use crate::error::{Error, io_error};
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// All that there is of these below `top`, the directories too, but for what `left_out` names. A name is relative to
/// `top`.
pub(crate) fn walk(
    top: &Path,
    files: &[PathBuf],
    left_out: &dyn Fn(&Path) -> bool,
) -> Result<Vec<(PathBuf, Metadata)>, Error> {
    let (mut left, mut all) = (files.to_vec(), Vec::new());
    while let Some(name) = left.pop() {
        let path = top.join(&name);
        let found = match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            found => found.map_err(io_error("look at", &path))?,
        };
        if found.is_dir() {
            for entry in path.read_dir().map_err(io_error("look into", &path))? {
                let name = name.join(entry.map_err(io_error("look into", &path))?.file_name());
                left.extend((!left_out(&name)).then_some(name));
            }
        }
        all.push((name, found));
    }
    Ok(all)
}

/// Gives whether there was anything. Sockets and pipes hold nothing.
pub(crate) fn write_archive(
    top: &Path,
    files: &[PathBuf],
    archive: &Path,
    left_out: &dyn Fn(&Path) -> bool,
) -> Result<bool, Error> {
    let mut packed = tar::Builder::new(create_new_file(archive)?);
    packed.follow_symlinks(false);
    let mut count = 0;
    for (name, found) in walk(top, files, left_out)? {
        let kind = found.file_type();
        if !name.as_os_str().is_empty() && (kind.is_dir() || kind.is_file() || kind.is_symlink()) {
            let path = top.join(&name);
            packed.append_path_with_name(&path, &name).map_err(io_error("save", &path))?;
            count += 1;
        }
    }
    packed.into_inner().and_then(|mut file| file.flush()).map_err(io_error("write", archive))?;
    verify_archive(archive, count)?;
    Ok(count > 0)
}

/// Every entry can be read again, and all are there.
fn verify_archive(archive: &Path, count: usize) -> Result<(), Error> {
    let mut file = tar::Archive::new(File::open(archive).map_err(io_error("read", archive))?);
    let mut found = 0;
    for entry in file.entries().map_err(io_error("read", archive))? {
        let mut entry = entry.map_err(io_error("read", archive))?;
        std::io::copy(&mut entry.by_ref(), &mut std::io::sink()).map_err(io_error("read", archive))?;
        found += 1;
    }
    if found == count {
        return Ok(());
    }
    let short = std::io::Error::new(std::io::ErrorKind::InvalidData, "entries are missing");
    Err(io_error("read", archive)(short))
}

/// A file that nobody has made before.
pub(crate) fn create_new_file(path: &Path) -> Result<File, Error> {
    failpoint::hit_before_call("worktree.pack").map_err(io_error("make", path))?;
    File::options().create_new(true).read(true).write(true).open(path).map_err(io_error("make", path))
}
