//! A file on its way: written beside its place under a name that nobody looks at, and removed again unless it
//! gets there. On a full disk, too, the original stays and nothing is left over.

use super::file_version::FileVersion;
use super::known_file::KnownFile;
use super::rename::rename_noreplace;
use crate::dir_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, fstat};
use nix::unistd::fsync;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use uuid::Uuid;

/// What marks the names of files on their way.
pub(crate) const TEMP_INFIX: &str = ".tmp.";

/// What marks the name of the file that a long one is exchanged with.
pub(crate) const SHADOW_SUFFIX: &str = ".twin";

/// A name beside `target` that nobody else has.
pub(super) fn temp_name(target: &str) -> String {
    format!(".{target}{TEMP_INFIX}{}", Uuid::new_v4().simple())
}

/// The name of the twin of `name`.
pub(super) fn shadow_name(name: &str) -> String {
    format!(".{name}{SHADOW_SUFFIX}")
}

/// A file on its way; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct TempFile<'d> {
    dir: &'d DirHandle,
    name: String,
    file: File,
    durability: Durability,
    is_placed: bool,
}

impl<'d> TempFile<'d> {
    /// Writes `bytes` beside `target`, with the permission bits `mode`, flushed as `durability` asks.
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
        let made = failpoint::hit_before_call("store.create")
            .and_then(|()| Ok(openat(dir, name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?));
        let fd = made.map_err(|cause| Error::io("create", &path, cause))?;
        let mut temporary = TempFile { dir, name, file: File::from(fd), durability, is_placed: false };
        let filled = write_contents(&mut temporary.file, bytes, mode, durability);
        filled.map_err(|cause| Error::io("write", &path, cause))?;
        Ok(temporary)
    }

    /// Puts it in the place of `target`, and says what is there then, where that can be told: not where somebody else has
    /// changed it by then. Flushing the directory is the caller's, by `settle`, after its locks.
    pub(crate) fn replace(mut self, target: &str) -> Result<Option<KnownFile>, Error> {
        let written = self.identity();
        failpoint::hit_before_call("store.replace")
            .and_then(|()| Ok(renameat(self.dir, self.name.as_str(), self.dir, target)?))
            .map_err(|cause| Error::io("replace", &self.dir.join(target), cause))?;
        self.is_placed = true;
        failpoint::hit("store.replaced");
        let there =
            self.identity().filter(|it| written.is_some_and(|written| it.is_same_after_rename(&written)));
        Ok(there.map(|file| KnownFile::from_written(file, self.durability)))
    }

    fn identity(&self) -> Option<FileVersion> {
        fstat(&self.file).ok().map(|stat| FileVersion::from_stat(&stat))
    }

    /// Puts it at `target` if nothing is there; false if something is. Then as `TempFile::swap_roster`.
    pub(crate) fn create(mut self, target: &str) -> Result<bool, Error> {
        let path = self.dir.join(target);
        failpoint::hit_before_call("store.place").map_err(|cause| Error::io("create", &path, cause))?;
        match rename_noreplace(self.dir, &self.name, target) {
            Ok(()) => self.is_placed = true,
            Err(Errno::EEXIST) => {}
            Err(errno) => return Err(Error::io("create", &path, errno)),
        }
        failpoint::hit("store.placed");
        Ok(self.is_placed)
    }
}

/// Waits until what was put in place in `dir` is on the disk, if `durability` asks for that.
pub(crate) fn sync_dir(dir: &DirHandle, durability: Durability) -> Result<(), Error> {
    if durability < Durability::Power {
        return Ok(());
    }
    failpoint::hit_before_call("store.settle")
        .and_then(|()| Ok(fsync(dir)?))
        .map_err(|cause| Error::io("flush", dir.path(), cause))
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if !self.is_placed {
            // A leftover is harmless, and the error that led here is the one to tell.
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

/// Writes a whole file in one step, whoever else does; for our own files, which need no lock.
pub(crate) fn write_file(
    dir: &DirHandle,
    name: &str,
    bytes: &[u8],
    durability: Durability,
) -> Result<(), Error> {
    write_file_with_mode(dir, name, bytes, 0o600, durability)
}

/// The same with the permission bits `mode`.
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
