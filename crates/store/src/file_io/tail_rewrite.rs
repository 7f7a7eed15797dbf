//! Changes the end (tail) of a long file without rewriting the whole file.
//!
//! Beside the file is a shadow copy, which lacks only the last change. A change brings the shadow
//! copy up to date, writes the new tail into it, and exchanges the two files. A reader sees either
//! the old or the new file. If the process is killed before the exchange, the file is unchanged.
//! After the exchange, the old file is the shadow copy for the next change.
//!
//! A tail can be changed only if the file still has the version of teamd's last change
//! ([`KnownFile`]). Otherwise the whole file is read and replaced ([`super::read_modify_write`]).

use super::durability_and_backup_options::IoOptions;
use super::file_version::FileVersion;
use super::json_type_and_size_limit::JsonShape;
use super::last_written_version_and_shadow_copy::{KnownFile, ShadowCopy, shadow_name};
use super::read_with_version::{check_size, open_own_file};
use super::rename::rename_exchange;
use super::write_via_temp_file::temp_name;
use crate::directory_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::mkdir_lock::Lock;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat};
use std::cell::Cell;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, PermissionsExt};

/// The shadow copy (a second copy of the file) lacks the bytes of the file's last change. The next
/// change must add them before it writes the new tail. Up to this many missing bytes are written in
/// one call with the tail. If more are missing, the kernel copies them in a separate step.
const MAX_INLINE_COPY: u64 = 64 << 10;

/// An open file that still has its known version.
#[derive(Debug)]
pub(crate) struct LongFile<'d> {
    dir: &'d DirHandle,
    name: &'d str,
    file: File,
    stat: FileStat,
    known: KnownFile,
}

impl<'d> LongFile<'d> {
    /// Opens the file `name`. `None` if the file is missing or no longer has the version `known`.
    /// Also `None` if its timestamps are whole seconds, which are too coarse to show a change.
    pub(crate) fn open(
        dir: &'d DirHandle,
        name: &'d str,
        known: KnownFile,
    ) -> Result<Option<LongFile<'d>>, Error> {
        let Some((file, stat)) = open_own_file(dir, name)? else { return Ok(None) };
        let identity = FileVersion::from_stat(&stat);
        let is_known = identity == known.version && stat.st_nlink == 1 && identity.has_subsecond_stamp();
        Ok(is_known.then_some(LongFile { dir, name, file, stat, known }))
    }

    /// Reads the file's text from `offset` to the end. `None` if the text is not UTF-8, or if the
    /// file has changed since it was opened.
    pub(crate) fn read_tail(&self, offset: u64) -> Result<Option<String>, Error> {
        let mut tail = vec![0; self.known.size().saturating_sub(offset) as usize];
        match self.file.read_exact_at(&mut tail, offset) {
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            result => result.map_err(|cause| Error::io("read", &self.dir.join(self.name), cause))?,
        }
        let stat = fstat(&self.file).map_err(Error::from_errno("look at", &self.dir.join(self.name)))?;
        Ok(String::from_utf8(tail).ok().filter(|_| FileVersion::from_stat(&stat) == self.known.version))
    }

    /// Writes a copy of the file with a new tail: from `offset` on, the text `after` replaces the
    /// text `before`. `None` if the copy can't be made, for example because the disk is full. The
    /// caller then replaces the file whole, which reports the error.
    pub(crate) fn stage_tail(
        &self,
        io: &IoOptions,
        offset: u64,
        (before, after): (&str, &str),
    ) -> Result<Option<StagedCopy<'d>>, Error> {
        let shared_length = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        check_size(self.dir, self.name, offset + after.len() as u64, JsonShape::Array.limit())?;
        let (shared_bytes, tail) = (offset + shared_length as u64, &after.as_bytes()[shared_length..]);
        Ok(self.stage_copy(shared_bytes, tail, io.durability.max(self.known.durability)).ok())
    }

    /// Takes the lock of the file.
    pub(crate) fn lock(&self) -> Result<Lock<'d>, Error> {
        Lock::acquire(self.dir, self.name)
    }

    /// Puts the staged copy in the file's place, unless the file has changed or `lock` is lost.
    pub(crate) fn swap_in(&self, staged: &StagedCopy, lock: &Lock) -> Result<SwapOutcome, Error> {
        if !self.known.is_current(self.dir, self.name)? || !lock.is_ours()? {
            return Ok(SwapOutcome::Rejected);
        }
        self.swap_and_verify(staged)
    }

    /// Exchanges the file and the staged copy, which has the new tail. Then checks the version of
    /// the file that was replaced: if another program had changed that file, the exchange is
    /// undone.
    fn swap_and_verify(&self, staged: &StagedCopy) -> Result<SwapOutcome, Error> {
        if rename_exchange(self.dir, &staged.name, self.name).is_err() {
            return Ok(SwapOutcome::Rejected);
        }
        failpoint::hit("shadow.exchanged");
        let version_of = |name| FileVersion::stat_file(self.dir, name);
        // The exchange of the two files has already stored the change, so a failed `stat` must not
        // be an error. After an error the caller would make the change again, and a message would
        // be stored twice.
        let (Ok(public), Ok(old)) = (version_of(self.name), version_of(&staged.name)) else {
            return Ok(SwapOutcome::Done(None));
        };
        let is_ours = public.is_some_and(|public| public.is_same_file(&staged.version));
        if !old.is_some_and(|version| version.is_same_after_rename(&self.known.version)) {
            return Ok(if is_ours && self.swap_back(staged) {
                SwapOutcome::Rejected
            } else {
                SwapOutcome::Done(None)
            });
        }
        // A file that another program has changed since the exchange has no known version.
        let Some(file) = public.filter(|public| public.is_same_after_rename(&staged.version)) else {
            return Ok(SwapOutcome::Done(None));
        };
        let (durability, shadow) = (staged.durability, self.keep_shadow(staged));
        Ok(SwapOutcome::Done(Some(KnownFile { version: file, durability, shadow })))
    }

    /// Undoes the exchange, so that the file's name leads to the old file again. If another program
    /// has replaced the new file since the exchange, nothing is undone, and the result is false.
    fn swap_back(&self, staged: &StagedCopy) -> bool {
        if rename_exchange(self.dir, &staged.name, self.name).is_err() {
            return false;
        }
        let is_ours = |version: FileVersion| version.is_same_file(&staged.version);
        let is_undone =
            FileVersion::stat_file(self.dir, &staged.name).is_ok_and(|version| version.is_some_and(is_ours));
        is_undone || rename_exchange(self.dir, &staged.name, self.name).is_err()
    }

    /// Keeps the old file as the shadow copy for the next change.
    fn keep_shadow(&self, staged: &StagedCopy) -> Option<ShadowCopy> {
        let shadow = shadow_name(self.name);
        renameat(self.dir, staged.name.as_str(), self.dir, shadow.as_str()).ok()?;
        staged.is_placed.set(true);
        let identity = FileVersion::stat_file(self.dir, &shadow).ok()??;
        identity
            .is_same_after_rename(&self.known.version)
            .then_some(ShadowCopy { identity, shared_bytes: staged.shared_bytes })
    }

    /// Writes the new version of the file under a unique temporary name. No other process writes to
    /// the temporary file, so the caller does not need the lock.
    fn stage_copy(
        &self,
        shared_bytes: u64,
        tail: &[u8],
        durability: Durability,
    ) -> std::io::Result<StagedCopy<'d>> {
        let name = temp_name(self.name);
        let (version, is_placed) = (self.known.version, Cell::new(false));
        let mut staged = StagedCopy { dir: self.dir, name, version, shared_bytes, durability, is_placed };
        let shadow_file =
            self.known.shadow.and_then(|shadow| Some((self.take_shadow(&shadow, &staged.name)?, shadow)));
        let (file, start, size) = match &shadow_file {
            Some((file, shadow)) => (file, shadow.shared_bytes.min(shared_bytes), shadow.identity.size()),
            None => (&self.create_copy(&staged.name)?, 0, 0),
        };
        // The shadow copy must not be overwritten while a program reads it. A program may still
        // read it, because the shadow copy was the file itself until the last exchange. The kernel
        // grants a write lease only if no other process has the shadow copy open, and makes new
        // readers wait.
        let lease = platform::system().take_write_lease(file).ok_or(std::io::ErrorKind::ResourceBusy)?;
        if shadow_file.is_some() && durability >= Durability::Ordered {
            // The last exchange of the file and the shadow copy is flushed to the disk before the
            // shadow copy is overwritten. Otherwise a power loss could undo the exchange, and the
            // file's name would lead to the overwritten shadow copy.
            platform::system().sync_directory(self.dir.as_fd())?;
        }
        let tail_start = if shared_bytes - start > MAX_INLINE_COPY { shared_bytes } else { start };
        copy_range(&self.file, file, start, tail_start)?;
        let mut bytes = vec![0; (shared_bytes - tail_start) as usize];
        self.file.read_exact_at(&mut bytes, tail_start)?;
        bytes.extend_from_slice(tail);
        write_tail((file, size), &bytes, tail_start, durability)?;
        drop(lease);
        staged.version = FileVersion::from_stat(&fstat(file)?);
        Ok(staged)
    }

    /// Renames the shadow copy to `staged_name` and opens it. `None` if the shadow copy does not
    /// have the expected version or if another process has it open.
    fn take_shadow(&self, shadow: &ShadowCopy, staged_name: &str) -> Option<File> {
        let name = shadow_name(self.name);
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(self.dir, name.as_str(), flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok()?;
        if FileVersion::from_stat(&stat) != shadow.identity
            || stat.st_nlink != 1
            || platform::system().take_write_lease(&file).is_none()
        {
            return None;
        }
        renameat(self.dir, name.as_str(), self.dir, staged_name).ok()?;
        let version = FileVersion::stat_file(self.dir, staged_name).ok()??;
        version.is_same_after_rename(&shadow.identity).then_some(file)
    }

    fn create_copy(&self, staged_name: &str) -> std::io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        failpoint::hit_before_call("shadow.create")?;
        let file = File::from(openat(self.dir, staged_name, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        file.set_permissions(Permissions::from_mode(platform::mode_bits(self.stat.st_mode) & 0o7755))?;
        Ok(file)
    }
}

/// The result of [`LongFile::swap_in`].
#[derive(Debug)]
pub(crate) enum SwapOutcome {
    /// Nothing was changed: the two files can't be exchanged, another program changed the file
    /// first, or this process lost the lock.
    Rejected,
    /// The change is stored. Contains the file's new version, or `None` if it is unknown.
    Done(Option<KnownFile>),
}

/// A copy of the file with the new tail, under a temporary name. When the copy takes the file's
/// place, the old file gets the temporary name. Dropping a `StagedCopy` deletes the file that has
/// the temporary name.
#[derive(Debug)]
pub(crate) struct StagedCopy<'d> {
    dir: &'d DirHandle,
    name: String,
    version: FileVersion,
    /// Number of bytes from the start that the copy has in common with the file.
    shared_bytes: u64,
    durability: Durability,
    /// Whether the staged copy has been renamed, so that dropping it deletes no file.
    is_placed: Cell<bool>,
}

impl Drop for StagedCopy<'_> {
    fn drop(&mut self) {
        if !self.is_placed.get() {
            drop(self.dir.unlink(&self.name));
        }
    }
}

/// Copies the bytes between the offsets `start` and `end` of `file` to the same place in `shadow`.
/// The kernel copies them without a buffer in this process.
fn copy_range(file: &File, shadow: &File, start: u64, end: u64) -> std::io::Result<()> {
    if start == end {
        return Ok(());
    }
    let (mut source, mut sink) = (file, shadow);
    source.seek(SeekFrom::Start(start))?;
    sink.seek(SeekFrom::Start(start))?;
    let count = std::io::copy(&mut source.take(end - start), &mut sink)?;
    if count == end - start { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes `tail` into the shadow copy, at `offset`. Cuts off any bytes after the tail. `size` is
/// the size of the shadow copy before the write.
fn write_tail(
    (shadow, size): (&File, u64),
    tail: &[u8],
    offset: u64,
    durability: Durability,
) -> std::io::Result<()> {
    failpoint::hit_before_call("shadow.write")?;
    shadow.write_all_at(tail, offset)?;
    let end = offset + tail.len() as u64;
    if size > end {
        shadow.set_len(end)?;
    }
    failpoint::hit_before_call("shadow.written")?;
    if durability >= Durability::Ordered { shadow.sync_all() } else { Ok(()) }
}
