//! Writes files via temporary files. New content is written to a temporary file beside the target,
//! under a name that readers ignore. The temporary file then replaces the target or is deleted. If
//! the disk is full, the temporary file is deleted and the target is unchanged.

use super::file_version::FileVersion;
use super::last_written_version_and_shadow_copy::KnownFile;
use super::rename::rename_noreplace;
use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstat};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use uuid::Uuid;

/// Part of the names of all temporary files.
pub(crate) const TEMP_INFIX: &str = ".tmp.";

/// A unique name for a temporary file of `target`.
pub(super) fn temp_name(target: &str) -> String {
    format!(".{target}{TEMP_INFIX}{}", Uuid::new_v4().simple())
}

/// A temporary file. Dropping it deletes the file, unless it was put in place.
#[derive(Debug)]
pub(crate) struct TempFile<'d> {
    dir: &'d DirHandle,
    name: String,
    file: File,
    durability: Durability,
    is_placed: bool,
}

impl<'d> TempFile<'d> {
    /// Writes `bytes` to a temporary file for `target`, with the permission bits `mode`. Flushes
    /// the temporary file as `durability` requires.
    pub(crate) fn write(
        dir: &'d DirHandle,
        target: &str,
        bytes: &[u8],
        mode: u32,
        durability: Durability,
    ) -> Result<TempFile<'d>, Error> {
        let name = temp_name(target);
        let path = dir.join(&name);
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let created = failpoint::hit_before_call("store.create")
            .and_then(|()| Ok(openat(dir, name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?));
        let fd = created.map_err(|cause| Error::io("create", &path, cause))?;
        let mut temp_file = TempFile { dir, name, file: File::from(fd), durability, is_placed: false };
        let result = write_contents(&mut temp_file.file, bytes, mode, durability);
        result.map_err(|cause| Error::io("write", &path, cause))?;
        Ok(temp_file)
    }

    /// Replaces `target` by the temporary file. Returns the version of the new file, or `None` if
    /// another program has already changed the new file. The caller flushes the directory with
    /// [`sync_dir`] after it has released its locks.
    pub(crate) fn replace(mut self, target: &str) -> Result<Option<KnownFile>, Error> {
        let written_version = self.identity();
        failpoint::hit_before_call("store.replace")
            .and_then(|()| Ok(renameat(self.dir, self.name.as_str(), self.dir, target)?))
            .map_err(|cause| Error::io("replace", &self.dir.join(target), cause))?;
        self.is_placed = true;
        failpoint::hit("store.replaced");
        let version = self
            .identity()
            .filter(|version| written_version.is_some_and(|written| version.is_same_after_rename(&written)));
        Ok(version.map(|file| KnownFile::from_written(file, self.durability)))
    }

    fn identity(&self) -> Option<FileVersion> {
        fstat(&self.file).ok().map(|stat| FileVersion::from_stat(&stat))
    }

    /// Renames the temporary file to `target` if `target` does not exist. Returns false if `target`
    /// exists. After a rename, the caller flushes the directory with [`sync_dir`].
    pub(crate) fn create(mut self, target: &str) -> Result<bool, Error> {
        let path = self.dir.join(target);
        failpoint::hit_before_call("store.create-file").map_err(|cause| Error::io("create", &path, cause))?;
        match rename_noreplace(self.dir, &self.name, target) {
            Ok(()) => self.is_placed = true,
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(Error::io("create", &path, errno)),
        }
        failpoint::hit("store.file-created");
        Ok(self.is_placed)
    }
}

/// Flushes the entries of `dir` to the disk, if `durability` is `Power`.
pub(crate) fn sync_dir(dir: &DirHandle, durability: Durability) -> Result<(), Error> {
    if durability < Durability::Power {
        return Ok(());
    }
    failpoint::hit_before_call("store.sync-dir")
        .and_then(|()| platform::system().sync_directory(dir.as_fd()))
        .map_err(|cause| Error::io("flush", dir.path(), cause))
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // An error of the deletion is ignored, because a temporary file that stays does no harm.
            drop(self.dir.unlink(&self.name));
        }
    }
}

fn write_contents(file: &mut File, bytes: &[u8], mode: u32, durability: Durability) -> std::io::Result<()> {
    failpoint::hit_before_call("store.write")?;
    file.write_all(bytes)?;
    failpoint::hit_before_call("store.written")?;
    file.set_permissions(Permissions::from_mode(mode))?;
    if durability >= Durability::Ordered {
        file.sync_all()?;
    }
    Ok(())
}

/// Replaces a file whole, without a lock. For files that only teamd writes.
pub(crate) fn write_file(
    dir: &DirHandle,
    name: &str,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    write_file_with_mode(dir, name, bytes, 0o600, durability)
}

/// Replaces a file like [`write_file`], with the permission bits `mode`.
pub(crate) fn write_file_with_mode(
    dir: &DirHandle,
    name: &str,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> Result<(), Error> {
    TempFile::write(dir, name, bytes, mode, durability)?.replace(name)?;
    sync_dir(dir, durability)
}
