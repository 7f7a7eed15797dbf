//! Changing the end of a long file at the cost of the change: a twin beside it, which lags by what was changed last, is
//! brought up to date, gets the new end, and is exchanged with it. A reader sees the one or the other, never half, and
//! what is killed in between leaves the file as it was. The file that was exchanged is the twin of the next change.
//!
//! None of it is done unless the file is known to be as it was left ([`Known`]): what others have written since is read
//! whole, and replaced as any other file (`change`).

use super::lease::Lease;
use super::snapshot::{Identity, opened, within};
use super::temporary::{exchange, fresh_name, twin_of};
use super::{Shape, Way};
use crate::directory::Directory;
use crate::durability::Durability;
use crate::error::Error;
use crate::lock::Lock;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::{FileStat, Mode, fstat};
use nix::unistd::fsync;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, PermissionsExt};

/// So many bytes are brought over in the call that writes what comes behind them.
const LITTLE: u64 = 64 << 10;

/// A file as we left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(super) file: Identity,
    /// How much of it survives: whoever changes its end keeps that up, whatever is enough for what is added.
    durability: Durability,
    twin: Option<Twin>,
}

/// The file beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Twin {
    identity: Identity,
    /// So many bytes from the start it has in common with the file.
    common: u64,
}

impl Known {
    /// What was just put in place.
    pub(super) fn placed(file: Identity, durability: Durability) -> Known {
        Known { file, durability, twin: None }
    }

    /// What it was when it was left.
    pub(crate) fn file(&self) -> Identity {
        self.file
    }

    /// Whether its next state costs what is changed alone: no copy of all of it, and no wait for a disk.
    pub(crate) fn is_quick(&self, durability: Durability) -> bool {
        self.twin.is_some() && self.durability.max(durability) == Durability::Process
    }

    /// Whether `name` is still that, as far as a look can tell.
    pub(crate) fn is_at(&self, dir: &Directory, name: &str) -> Result<bool, Error> {
        Ok(Identity::at(dir, name)? == Some(self.file))
    }

    /// As large as that.
    pub(crate) fn size(&self) -> u64 {
        self.file.size()
    }
}

/// A file that is as it was left, open.
#[derive(Debug)]
pub(crate) struct Long<'d> {
    dir: &'d Directory,
    name: &'d str,
    file: File,
    stat: FileStat,
    known: Known,
}

impl<'d> Long<'d> {
    /// None unless the file is as `known` says, by all that can be told, where stamps tell everything (`stamps`).
    pub(crate) fn open(dir: &'d Directory, name: &'d str, known: Known) -> Result<Option<Long<'d>>, Error> {
        let Some((file, stat)) = opened(dir, name)? else { return Ok(None) };
        let identity = Identity::of(&stat);
        let same = identity == known.file && stat.st_nlink == 1 && identity.has_fraction();
        Ok(same.then_some(Long { dir, name, file, stat, known }))
    }

    /// What stands from `offset` on; none if it is no text, or is not what it was any more.
    pub(crate) fn end(&self, offset: u64) -> Result<Option<String>, Error> {
        let mut end = vec![0; self.known.size().saturating_sub(offset) as usize];
        match self.file.read_exact_at(&mut end, offset) {
            Err(cause) if cause.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(|cause| Error::io("read", &self.dir.join(self.name), cause))?,
        }
        let after = fstat(&self.file).map_err(Error::at("look at", &self.dir.join(self.name)))?;
        Ok(String::from_utf8(end).ok().filter(|_| Identity::of(&after) == self.known.file))
    }

    /// A file in which `after` stands in the place of `before`, which is all that stands from `offset` on; none if that can't
    /// be had in this way, for want of room say, which is the other way's to tell.
    pub(crate) fn prepared(
        &self,
        way: &Way,
        offset: u64,
        (before, after): (&str, &str),
    ) -> Result<Option<Own<'d>>, Error> {
        let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        within(self.dir, self.name, offset + after.len() as u64, Shape::Array.limit())?;
        let (common, end) = (offset + same as u64, &after.as_bytes()[same..]);
        Ok(self.own(common, end, way.durability.max(self.known.durability)).ok())
    }

    /// The lock of the file.
    pub(crate) fn lock(&self) -> Result<Lock<'d>, Error> {
        Lock::acquire(self.dir, self.name)
    }

    /// Puts it in place, unless the file is another by now, or `lock` is lost.
    pub(crate) fn put(&self, own: &Own, lock: &Lock) -> Result<Replaced, Error> {
        if !self.known.is_at(self.dir, self.name)? || !lock.is_ours()? {
            return Ok(Replaced::Not);
        }
        self.exchange(own)
    }

    /// Exchanges both. What stands in the file's place then is ours or of somebody who came later, so it is stored, but
    /// where what came out is not what was read: that goes back.
    fn exchange(&self, own: &Own) -> Result<Replaced, Error> {
        if exchange(self.dir, &own.name, self.name).is_err() {
            return Ok(Replaced::Not);
        }
        failpoint::hit("end.exchanged");
        let at = |name| Identity::at(self.dir, name);
        // A look that fails is no failure any more: whoever is told of one sends it again.
        let (Ok(public), Ok(came_out)) = (at(self.name), at(&own.name)) else {
            return Ok(Replaced::Done(None));
        };
        let is_ours = public.is_some_and(|public| public.is_same_file(&own.filled));
        if !came_out.is_some_and(|it| it.is_renamed(&self.known.file)) {
            return Ok(if is_ours && self.is_back(own) { Replaced::Not } else { Replaced::Done(None) });
        }
        // One that somebody has changed since is not known, though it is ours.
        let Some(file) = public.filter(|public| public.is_renamed(&own.filled)) else {
            return Ok(Replaced::Done(None));
        };
        let (durability, twin) = (own.durability, self.left(own));
        Ok(Replaced::Done(Some(Known { file, durability, twin })))
    }

    /// Exchanges once more. Where ours was replaced by then, that is the later one, and comes to its place again.
    fn is_back(&self, own: &Own) -> bool {
        if exchange(self.dir, &own.name, self.name).is_err() {
            return false;
        }
        let is_ours = |it: Identity| it.is_same_file(&own.filled);
        let ours = Identity::at(self.dir, &own.name).is_ok_and(|it| it.is_some_and(is_ours));
        ours || exchange(self.dir, &own.name, self.name).is_err()
    }

    /// What came out is the twin of the next change.
    fn left(&self, own: &Own) -> Option<Twin> {
        let twin = twin_of(self.name);
        renameat(self.dir, own.name.as_str(), self.dir, twin.as_str()).ok()?;
        own.gone.set(true);
        let identity = Identity::at(self.dir, &twin).ok()??;
        identity.is_renamed(&self.known.file).then_some(Twin { identity, common: own.common })
    }

    /// A file under a name of its own, as all is to be: nobody else writes into it, whoever has the lock.
    fn own(&self, common: u64, end: &[u8], durability: Durability) -> std::io::Result<Own<'d>> {
        let name = fresh_name(self.name);
        let (filled, gone) = (self.known.file, Cell::new(false));
        let mut own = Own { dir: self.dir, name, filled, common, durability, gone };
        let kept = self.known.twin.and_then(|twin| Some((self.kept(&twin, &own.name)?, twin)));
        let (file, same, size) = match &kept {
            Some((file, twin)) => (file, twin.common.min(common), twin.identity.size()),
            None => (&self.made(&own.name)?, 0, 0),
        };
        // It was the file itself before. Who has it open still reads in it; who is about to waits.
        let lease = Lease::take(file).ok_or(std::io::ErrorKind::ResourceBusy)?;
        if kept.is_some() && durability >= Durability::Ordered {
            // After a power cut its old name may lead to it again, until that it has none is on the disk.
            fsync(self.dir)?;
        }
        let at = if common - same > LITTLE { common } else { same };
        copy(&self.file, file, same, at)?;
        let mut bytes = vec![0; (common - at) as usize];
        self.file.read_exact_at(&mut bytes, at)?;
        bytes.extend_from_slice(end);
        fill((file, size), &bytes, at, durability)?;
        drop(lease);
        own.filled = Identity::of(&fstat(file)?);
        Ok(own)
    }

    /// The twin as it was left, under a name of our own.
    fn kept(&self, twin: &Twin, own: &str) -> Option<File> {
        let name = twin_of(self.name);
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(self.dir, name.as_str(), flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok()?;
        if Identity::of(&stat) != twin.identity || stat.st_nlink != 1 || Lease::take(&file).is_none() {
            return None;
        }
        renameat(self.dir, name.as_str(), self.dir, own).ok()?;
        let moved = Identity::at(self.dir, own).ok()??;
        moved.is_renamed(&twin.identity).then_some(file)
    }

    fn made(&self, own: &str) -> std::io::Result<File> {
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        failpoint::hit_before_call("end.create")?;
        let file = File::from(openat(self.dir, own, flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        file.set_permissions(Permissions::from_mode(self.stat.st_mode & 0o7777))?;
        Ok(file)
    }
}

/// What became of a change.
#[derive(Debug)]
pub(crate) enum Replaced {
    /// It can't be done in this way, or somebody else was faster; nothing is changed.
    Not,
    /// It is stored; with what is known of the file then, if that can be told.
    Done(Option<Known>),
}

/// A file of one change, and later the one that was changed; dropped, what is left under its name goes.
#[derive(Debug)]
pub(crate) struct Own<'d> {
    dir: &'d Directory,
    name: String,
    filled: Identity,
    /// So many bytes from the start it has in common with the file that it is to replace.
    common: u64,
    durability: Durability,
    /// Nothing is left under its name.
    gone: Cell<bool>,
}

impl Drop for Own<'_> {
    fn drop(&mut self) {
        if !self.gone.get() {
            drop(self.dir.unlink(&self.name));
        }
    }
}

/// Brings the bytes `from` to `to` over, of a file that may be long: the kernel does it on its own.
fn copy(file: &File, twin: &File, from: u64, to: u64) -> std::io::Result<()> {
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
fn fill((twin, size): (&File, u64), end: &[u8], at: u64, durability: Durability) -> std::io::Result<()> {
    failpoint::hit_before_call("end.write")?;
    twin.write_all_at(end, at)?;
    let to = at + end.len() as u64;
    if size > to {
        twin.set_len(to)?;
    }
    failpoint::hit_before_call("end.written")?;
    if durability >= Durability::Ordered { twin.sync_all() } else { Ok(()) }
}
