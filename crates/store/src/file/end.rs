//! Changing the end of a long file at the cost of the change: a twin beside it, which lags by what was changed last, is
//! brought up to date, gets the new end, and is exchanged with it. A reader sees the one or the other, never half, and
//! what is killed in between leaves the file as it was. The file that was exchanged is the twin of the next change.
//!
//! None of it is done unless the file is known to be as it was left ([`Known`]): what others have written since is read
//! whole, and replaced as any other file (`change`).

use super::lease::is_open_here_alone;
use super::snapshot::{Identity, opened, within};
use super::temporary::{exchange, twin_of};
use super::{Shape, Way, stamps};
use crate::directory::Directory;
use crate::durability::Durability;
use crate::error::Error;
use crate::lock::Lock;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, fstat};
use serde::{Deserialize, Serialize};
use std::fs::{File, Permissions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, PermissionsExt};

/// A file as we left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(super) file: Identity,
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
    pub(super) fn placed(stat: &FileStat) -> Known {
        Known { file: Identity::of(stat), twin: None }
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
    /// None unless the file is as `known` says, by all that can be told.
    pub(crate) fn open(dir: &'d Directory, name: &'d str, known: Known) -> Result<Option<Long<'d>>, Error> {
        let Some((file, stat)) = opened(dir, name)? else { return Ok(None) };
        let identity = Identity::of(&stat);
        let same =
            identity == known.file && stat.st_nlink == 1 && (identity.is_settled() || stamps::are_fine(dir));
        Ok(same.then_some(Long { dir, name, file, stat, known }))
    }

    /// What stands from `offset` on; none if it is no text, or is not what it was any more.
    pub(crate) fn end(&mut self, offset: u64) -> Result<Option<String>, Error> {
        let mut end = Vec::with_capacity(self.known.size().saturating_sub(offset) as usize + 1);
        let read = self.file.seek(SeekFrom::Start(offset)).and_then(|_| self.file.read_to_end(&mut end));
        read.map_err(|cause| Error::io("read", &self.dir.join(self.name), cause))?;
        let after = fstat(&self.file).map_err(Error::at("look at", &self.dir.join(self.name)))?;
        Ok(String::from_utf8(end).ok().filter(|_| Identity::of(&after) == self.known.file))
    }

    /// Puts `after` in the place of `before`, which is all that stands from `offset` on; none, and nothing is changed,
    /// where that can't be done in this way, or somebody else was faster.
    pub(crate) fn replace_end(
        &self,
        way: &Way,
        lock: &Lock,
        offset: u64,
        (before, after): (&str, &str),
    ) -> Result<Option<Known>, Error> {
        let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        within(self.dir, self.name, offset + after.len() as u64, Shape::Array.limit())?;
        let common = offset + same as u64;
        let Ok(twin) = self.twin(common) else { return self.give_up() };
        let end = &after.as_bytes()[same..];
        if fill(&twin, end, common, way.durability).is_err() {
            return self.give_up();
        }
        if Identity::at(self.dir, self.name)? != Some(self.known.file) || !lock.is_ours()? {
            return Ok(None);
        }
        self.exchange(&twin, common)
    }

    /// Exchanges both, unless that shows that the one or the other was not what it should be.
    fn exchange(&self, twin: &File, common: u64) -> Result<Option<Known>, Error> {
        let name = twin_of(self.name);
        if exchange(self.dir, &name, self.name).is_err() {
            return self.give_up();
        }
        crash::point("end.exchanged");
        let after = fstat(twin).map_err(Error::at("look at", &self.dir.join(self.name)))?;
        let was = Identity::at(self.dir, &name)?;
        let is_whole = Identity::at(self.dir, self.name)? == Some(Identity::of(&after));
        let Some(identity) = was.filter(|was| is_whole && was.is_renamed(&self.known.file)) else {
            // Somebody without the lock has put another file there, or this process was stopped and has lost it.
            exchange(self.dir, &name, self.name).map_err(Error::at("put back", &self.dir.join(self.name)))?;
            return Ok(None);
        };
        Ok(Some(Known { twin: Some(Twin { identity, common }), ..Known::placed(&after) }))
    }

    /// The twin, open for writing, with the first `common` bytes of the file.
    fn twin(&self, common: u64) -> std::io::Result<File> {
        let (twin, from) = match self.known.twin.and_then(|twin| Some((self.kept(&twin)?, twin.common))) {
            Some((twin, same)) => (twin, same.min(common)),
            None => (self.made()?, 0),
        };
        copy(&self.file, &twin, from, common)?;
        Ok(twin)
    }

    /// The twin as it was left, if nobody reads in it any more: it was the file itself before.
    fn kept(&self, twin: &Twin) -> Option<File> {
        let flags = OFlag::O_RDWR | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(self.dir, twin_of(self.name).as_str(), flags, Mode::empty()).ok()?);
        let stat = fstat(&file).ok()?;
        let same = Identity::of(&stat) == twin.identity && stat.st_nlink == 1;
        (same && is_open_here_alone(&file)).then_some(file)
    }

    fn made(&self) -> std::io::Result<File> {
        let name = twin_of(self.name);
        drop(self.dir.unlink(&name));
        let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        crash::before_call("end.create")?;
        let file = File::from(openat(self.dir, name.as_str(), flags, Mode::S_IRUSR | Mode::S_IWUSR)?);
        file.set_permissions(Permissions::from_mode(self.stat.st_mode & 0o7777))?;
        Ok(file)
    }

    /// Leaves the room to whoever replaces the file whole.
    fn give_up(&self) -> Result<Option<Known>, Error> {
        drop(self.dir.unlink(&twin_of(self.name)));
        Ok(None)
    }
}

/// Brings the bytes `from` to `to` over; a few, or all of a file that may be long, which the kernel does on its own.
fn copy(file: &File, twin: &File, from: u64, to: u64) -> std::io::Result<()> {
    let (mut source, mut sink) = (file, twin);
    source.seek(SeekFrom::Start(from))?;
    sink.seek(SeekFrom::Start(from))?;
    let copied = std::io::copy(&mut source.take(to - from), &mut sink)?;
    if copied == to - from { Ok(()) } else { Err(std::io::ErrorKind::UnexpectedEof.into()) }
}

fn fill(twin: &File, end: &[u8], at: u64, durability: Durability) -> std::io::Result<()> {
    crash::before_call("end.write")?;
    twin.write_all_at(end, at)?;
    twin.set_len(at + end.len() as u64)?;
    crash::before_call("end.written")?;
    if durability >= Durability::Ordered { twin.sync_all() } else { Ok(()) }
}
