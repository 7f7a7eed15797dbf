//! A file on its way: written beside its place under a name that nobody looks at, and removed again unless it
//! gets there. On a full disk, too, the original stays and nothing is left over.

use super::snapshot::FileVersion;
use super::tail_rewrite::KnownFile;
use crate::Durability;
use crate::dir_handle::DirHandle;
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::fsync;
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::FileExt;
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

/// Adds `bytes` to the end of a file of ours; beyond `limit` bytes it becomes `NAME.1` first.
pub(crate) fn append(dir: &DirHandle, name: &str, bytes: &[u8], limit: u64) -> Result<(), Error> {
    append_bytes(dir, name, bytes, limit, TornLine::Keep)
}

/// The same for a whole line, which never goes on behind half of one that a crash or a full disk left.
pub(crate) fn append_line(dir: &DirHandle, name: &str, line: &str, limit: u64) -> Result<(), Error> {
    append_bytes(dir, name, format!("{line}\n").as_bytes(), limit, TornLine::Terminate)
}

/// What happens to a last line without an end.
#[derive(PartialEq, Eq)]
enum TornLine {
    Keep,
    Terminate,
}

fn append_bytes(dir: &DirHandle, name: &str, bytes: &[u8], limit: u64, torn: TornLine) -> Result<(), Error> {
    let path = dir.join(name);
    if dir.stat(name)?.is_some_and(|stat| stat.st_size.unsigned_abs() + bytes.len() as u64 > limit) {
        rename(dir, name, &format!("{name}.1"))?;
    }
    let (mut file, before) = open_to_append(dir, name)?;
    let bytes = match torn == TornLine::Terminate && has_torn_line(&file, before) {
        true => [b"\n", bytes].concat(),
        false => bytes.to_vec(),
    };
    // Half of it may stand there after a failure. It is not cut off: whoever follows the file would take that for a
    // new one, and read it from its start.
    failpoint::hit_before_call("store.append")
        .and_then(|()| file.write_all(&bytes))
        .map_err(|cause| Error::io("write", &path, cause))?;
    failpoint::hit("store.appended");
    Ok(())
}

/// Adds `bytes` to the end of a file of ours; nothing, if it would grow beyond `limit` bytes. On a full disk a part of them
/// may stand there.
pub(crate) fn append_if_fits(dir: &DirHandle, name: &str, bytes: &[u8], limit: u64) -> Result<(), Error> {
    let (mut file, before) = open_to_append(dir, name)?;
    if before + bytes.len() as u64 > limit {
        return Ok(());
    }
    failpoint::hit_before_call("store.note")
        .and_then(|()| file.write_all(bytes))
        .map_err(|cause| Error::io("write", &dir.join(name), cause))?;
    failpoint::hit("store.noted");
    Ok(())
}

/// Writes `bytes` over the beginning of a file of ours.
pub(crate) fn overwrite(dir: &DirHandle, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let (file, _) = open_to_write(dir, name, OFlag::empty())?;
    failpoint::hit_before_call("store.overwrite")
        .and_then(|()| file.write_all_at(bytes, 0))
        .map_err(|cause| Error::io("write", &dir.join(name), cause))
}

/// The file, made if it is missing, and its size.
fn open_to_append(dir: &DirHandle, name: &str) -> Result<(File, u64), Error> {
    open_to_write(dir, name, OFlag::O_APPEND)
}

fn open_to_write(dir: &DirHandle, name: &str, how: OFlag) -> Result<(File, u64), Error> {
    let path = dir.join(name);
    let flags =
        how | OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd =
        openat(dir, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).map_err(Error::from_errno("open", &path))?;
    let stat = fstat(&fd).map_err(Error::from_errno("look at", &path))?;
    if crate::dir_handle::file_type(&stat) != SFlag::S_IFREG {
        return Err(Error::UnexpectedFileType { path, what: "not a regular file" });
    }
    Ok((File::from(fd), stat.st_size.unsigned_abs()))
}

/// Renames within `dir`, onto what is there.
pub(crate) fn rename(dir: &DirHandle, from: &str, to: &str) -> Result<(), Error> {
    failpoint::hit_before_call("store.rotate")
        .and_then(|()| Ok(renameat(dir, from, dir, to)?))
        .map_err(|cause| Error::io("rename", &dir.join(from), cause))
}

fn has_torn_line(file: &File, size: u64) -> bool {
    let mut last = [0];
    size > 0 && file.read_exact_at(&mut last, size - 1).is_ok() && last != [b'\n']
}

/// Renames within `dir`, never onto something.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn rename_noreplace(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    match renameat2(dir, from, dir, to, RenameFlags::RENAME_NOREPLACE) {
        Err(Errno::EINVAL | Errno::ENOSYS) => rename_if_absent(dir, from, to),
        done => done,
    }
}

/// Renames within `dir`, never onto something that is there at the look before.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn rename_noreplace(dir: &Directory, from: &str, to: &str) -> nix::Result<()> {
    rename_unless_seen(dir, from, to)
}

/// Has two files in `dir` change their names in one step.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn rename_exchange(dir: &DirHandle, one: &str, other: &str) -> nix::Result<()> {
    use nix::fcntl::{RenameFlags, renameat2};
    renameat2(dir, one, dir, other, RenameFlags::RENAME_EXCHANGE)
}

/// Not to be had here.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn rename_exchange(_: &Directory, _: &str, _: &str) -> nix::Result<()> {
    Err(Errno::ENOSYS)
}

/// For file systems without the exclusive rename: the callers' locks keep others out between the two steps.
fn rename_if_absent(dir: &DirHandle, from: &str, to: &str) -> nix::Result<()> {
    use nix::fcntl::AtFlags;
    match nix::sys::stat::fstatat(dir, to, AtFlags::AT_SYMLINK_NOFOLLOW) {
        Ok(_) => Err(Errno::EEXIST),
        Err(Errno::ENOENT) => renameat(dir, from, dir, to),
        Err(errno) => Err(errno),
    }
}
