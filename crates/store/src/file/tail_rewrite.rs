//! Changing the end of a long file at the cost of the change: a twin beside it, which lags by what was changed last, is
//! brought up to date, gets the new end, and is exchanged with it. A reader sees the one or the other, never half, and
//! what is killed in between leaves the file as it was. The file that was exchanged is the twin of the next change.
//!
//! None of it is done unless the file is known to be as it was left (`Known`): what others have written since is read
//! whole, and replaced as any other file (`change`).

use super::file_version::FileVersion;
use super::io_context::IoContext;
use super::known_file::{KnownFile, ShadowCopy};
use super::rename::rename_exchange;
use super::shape::JsonShape;
use super::snapshot::{check_size, open_regular_file};
use super::temp_file::{shadow_name, temp_name};
use super::write_lease::WriteLease;
use crate::dir_handle::DirHandle;
use crate::durability::Durability;
use crate::error::Error;
use crate::lock::Lock;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::fsync;
use std::cell::Cell;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, PermissionsExt};

/// So many bytes are brought over in the call that writes what comes behind them.
const MAX_INLINE_COPY: u64 = 64 << 10;

/// A file that is as it was left, open.
#[derive(Debug)]
pub(crate) struct LongFile<'d> {
    dir: &'d DirHandle,
    name: &'d str,
    file: File,
    stat: FileStat,
    known: KnownFile,
}

impl<'d> LongFile<'d> {
    /// None unless the file is as `known` says, by all that can be told, where stamps tell everything (`stamps`).
    pub(crate) fn open(
        dir: &'d DirHandle,
        name: &'d str,
        known: KnownFile,
    ) -> Result<Option<LongFile<'d>>, Error> {
        let Some((file, stat)) = open_regular_file(dir, name)? else { return Ok(None) };
        let identity = FileVersion::from_stat(&stat);
        let same = identity == known.version && stat.st_nlink == 1 && identity.has_subsecond_stamp();
        Ok(same.then_some(LongFile { dir, name, file, stat, known }))
    }

    /// What stands from `offset` on; none if it is no text, or is not what it was any more.
    pub(crate) fn read_tail(&self, offset: u64) -> Result<Option<String>, Error> {
        let mut end = vec![0; self.known.size().saturating_sub(offset) as usize];
        match self.file.read_exact_at(&mut end, offset) {
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(|cause| Error::io("read", &self.dir.join(self.name), cause))?,
        }
        let after = fstat(&self.file).map_err(Error::from_errno("look at", &self.dir.join(self.name)))?;
        Ok(String::from_utf8(end).ok().filter(|_| FileVersion::from_stat(&after) == self.known.version))
    }

    /// A file in which `after` stands in the place of `before`, which is all that stands from `offset` on; none if that can't
    /// be had in this way, for want of room say, which is the other way's to tell.
    pub(crate) fn stage_tail(
        &self,
        way: &IoContext,
        offset: u64,
        (before, after): (&str, &str),
    ) -> Result<Option<StagedCopy<'d>>, Error> {
        let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        check_size(self.dir, self.name, offset + after.len() as u64, JsonShape::Array.limit())?;
        let (common, end) = (offset + same as u64, &after.as_bytes()[same..]);
        Ok(self.stage_copy(common, end, way.durability.max(self.known.durability)).ok())
    }

    /// The lock of the file.
    pub(crate) fn lock(&self) -> Result<Lock<'d>, Error> {
        Lock::acquire(self.dir, self.name)
    }

    /// Puts it in place, unless the file is another by now, or `lock` is lost.
    pub(crate) fn swap_in(&self, own: &StagedCopy, lock: &Lock) -> Result<SwapOutcome, Error> {
        if !self.known.is_current(self.dir, self.name)? || !lock.is_ours()? {
            return Ok(SwapOutcome::Rejected);
        }
        self.swap_and_verify(own)
    }

    /// Exchanges both. What stands in the file's place then is ours or of somebody who came later, so it is stored, but
    /// where what came out is not what was read: that goes back.
    fn swap_and_verify(&self, own: &StagedCopy) -> Result<SwapOutcome, Error> {
        if rename_exchange(self.dir, &own.name, self.name).is_err() {
            return Ok(SwapOutcome::Rejected);
        }
        failpoint::hit("end.exchanged");
        let at = |name| FileVersion::stat_file(self.dir, name);
        // A look that fails is no failure any more: whoever is told of one sends it again.
        let (Ok(public), Ok(came_out)) = (at(self.name), at(&own.name)) else {
            return Ok(SwapOutcome::Done(None));
        };
        let is_ours = public.is_some_and(|public| public.is_same_file(&own.version));
        if !came_out.is_some_and(|it| it.is_same_after_rename(&self.known.version)) {
            return Ok(if is_ours && self.swap_back(own) {
                SwapOutcome::Rejected
            } else {
                SwapOutcome::Done(None)
            });
        }
        // One that somebody has changed since is not known, though it is ours.
        let Some(file) = public.filter(|public| public.is_same_after_rename(&own.version)) else {
            return Ok(SwapOutcome::Done(None));
        };
        let (durability, twin) = (own.durability, self.keep_shadow(own));
        Ok(SwapOutcome::Done(Some(KnownFile { version: file, durability, shadow: twin })))
    }

    /// Exchanges once more. Where ours was replaced by then, that is the later one, and comes to its place again.
    fn swap_back(&self, own: &StagedCopy) -> bool {
        if rename_exchange(self.dir, &own.name, self.name).is_err() {
            return false;
        }
        let is_ours = |it: FileVersion| it.is_same_file(&own.version);
        let ours = FileVersion::stat_file(self.dir, &own.name).is_ok_and(|it| it.is_some_and(is_ours));
        ours || rename_exchange(self.dir, &own.name, self.name).is_err()
    }

    /// What came out is the twin of the next change.
    fn keep_shadow(&self, own: &StagedCopy) -> Option<ShadowCopy> {
        let twin = shadow_name(self.name);
        renameat(self.dir, own.name.as_str(), self.dir, twin.as_str()).ok()?;
        own.is_placed.set(true);
        let identity = FileVersion::stat_file(self.dir, &twin).ok()??;
        identity
            .is_same_after_rename(&self.known.version)
            .then_some(ShadowCopy { identity, shared_bytes: own.shared_bytes })
    }

    /// A file under a name of its own, as all is to be: nobody else writes into it, whoever has the lock.
    fn stage_copy(&self, common: u64, end: &[u8], durability: Durability) -> std::io::Result<StagedCopy<'d>> {
        let name = temp_name(self.name);
        let (filled, gone) = (self.known.version, Cell::new(false));
        let mut own = StagedCopy {
            dir: self.dir,
            name,
            version: filled,
            shared_bytes: common,
            durability,
            is_placed: gone,
        };
        let kept = self.known.shadow.and_then(|twin| Some((self.take_shadow(&twin, &own.name)?, twin)));
        let (file, same, size) = match &kept {
            Some((file, twin)) => (file, twin.shared_bytes.min(common), twin.identity.size()),
            None => (&self.create_copy(&own.name)?, 0, 0),
        };
        // It was the file itself before. Who has it open still reads in it; who is about to waits.
        let lease = WriteLease::take(file).ok_or(std::io::ErrorKind::ResourceBusy)?;
        if kept.is_some() && durability >= Durability::Ordered {
            // After a power cut its old name may lead to it again, until that it has none is on the disk.
            fsync(self.dir)?;
        }
        let at = if common - same > MAX_INLINE_COPY { common } else { same };
        copy_range(&self.file, file, same, at)?;
        let mut bytes = vec![0; (common - at) as usize];
        self.file.read_exact_at(&mut bytes, at)?;
        bytes.extend_from_slice(end);
        write_tail((file, size), &bytes, at, durability)?;
        drop(lease);
        own.version = FileVersion::from_stat(&fstat(file)?);
        Ok(own)
    }

    /// The twin as it was left, under a name of our own.
    fn take_shadow(&self, twin: &ShadowCopy, own: &str) -> Option<File> {
        let name = shadow_name(self.name);
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(self.dir, name.as_str(), flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok()?;
        if FileVersion::from_stat(&stat) != twin.identity
            || stat.st_nlink != 1
            || WriteLease::take(&file).is_none()
        {
            return None;
        }
        renameat(self.dir, name.as_str(), self.dir, own).ok()?;
        let moved = FileVersion::stat_file(self.dir, own).ok()??;
        moved.is_same_after_rename(&twin.identity).then_some(file)
    }

    fn create_copy(&self, own: &str) -> std::io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        failpoint::hit_before_call("end.create")?;
        let file = File::from(openat(self.dir, own, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        file.set_permissions(Permissions::from_mode(self.stat.st_mode & 0o7777))?;
        Ok(file)
    }
}

/// What became of a change.
#[derive(Debug)]
pub(crate) enum SwapOutcome {
    /// It can't be done in this way, or somebody else was faster; nothing is changed.
    Rejected,
    /// It is stored; with what is known of the file then, if that can be told.
    Done(Option<KnownFile>),
}

/// A file of one change, and later the one that was changed; dropped, what is left under its name goes.
#[derive(Debug)]
pub(crate) struct StagedCopy<'d> {
    dir: &'d DirHandle,
    name: String,
    version: FileVersion,
    /// So many bytes from the start it has in common with the file that it is to replace.
    shared_bytes: u64,
    durability: Durability,
    /// Nothing is left under its name.
    is_placed: Cell<bool>,
}

impl Drop for StagedCopy<'_> {
    fn drop(&mut self) {
        if !self.is_placed.get() {
            drop(self.dir.unlink(&self.name));
        }
    }
}

/// Brings the bytes `from` to `to` over, of a file that may be long: the kernel does it on its own.
fn copy_range(file: &File, twin: &File, from: u64, to: u64) -> std::io::Result<()> {
    if from == to {
        return Ok(());
    }
    let (mut source, mut sink) = (file, twin);
    source.seek(SeekFrom::Start(from))?;
    sink.seek(SeekFrom::Start(from))?;
    let copied = std::io::copy(&mut source.take(to - from), &mut sink)?;
    if copied == to - from { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

/// From `at` on there is `end`, and nothing behind it in a twin that was of that size.
fn write_tail(
    (twin, size): (&File, u64),
    end: &[u8],
    at: u64,
    durability: Durability,
) -> std::io::Result<()> {
    failpoint::hit_before_call("end.write")?;
    twin.write_all_at(end, at)?;
    let to = at + end.len() as u64;
    if size > to {
        twin.set_len(to)?;
    }
    failpoint::hit_before_call("end.written")?;
    if durability >= Durability::Ordered { twin.sync_all() } else { Ok(()) }
}
