//! A file as it was at one moment, and whether it still is. Opening never blocks, follows no link, and takes
//! regular files only. A text that does not parse is looked at again for a while: a foreign writer that
//! truncates in place may be in the middle.

use super::{Shape, Way};
use crate::directory::{Directory, file_type};
use crate::error::Error;
use crate::pause::Pause;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::geteuid;
use std::fs::File;
use std::io::Read;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const PATIENCE: Duration = Duration::from_secs(2);

/// What tells one state of a file from another, as far as `stat` can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: i64,
    seconds: i64,
    nanoseconds: i64,
}

impl Identity {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
    fn of(stat: &FileStat) -> Identity {
        Identity {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            seconds: stat.st_mtime as i64,
            nanoseconds: stat.st_mtime_nsec as i64,
        }
    }

    /// True if a change in place right after `now` could leave the same time stamp: clocks of file
    /// systems tick in milliseconds.
    fn is_fresh(&self, now: SystemTime) -> bool {
        let changed =
            Duration::new(self.seconds.max(0) as u64, self.nanoseconds.clamp(0, 999_999_999) as u32);
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        changed + Duration::from_millis(100) > now
    }
}

/// A file's bytes with what tells whether it has changed since.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    bytes: Vec<u8>,
    identity: Identity,
    fresh: bool,
    stat: FileStat,
}

impl Snapshot {
    /// The text; only snapshots that have one are handed out by [`read`].
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// The bytes, for readers that care for nothing else.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The permission bits, for the file that comes in its place.
    pub(super) fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    /// Refuses what a rename would tear from its other name, or from its owner.
    pub(super) fn writable(&self, dir: &Directory, name: &str) -> Result<(), Error> {
        let odd = |what| Err(Error::Odd { path: dir.join(name), what });
        if self.stat.st_nlink > 1 {
            return odd("a file with another name (hard link)");
        }
        if self.stat.st_uid != geteuid().as_raw() {
            return odd("another user's file");
        }
        Ok(())
    }
}

/// The file at `name`, parsed as far as its shape; none if there is none.
///
/// What still does not parse after two seconds is [`Error::Corrupt`], with a copy set aside.
pub(crate) fn read(way: &Way, dir: &Directory, name: &str, shape: Shape) -> Result<Option<Snapshot>, Error> {
    read_for(way, dir, name, shape, PATIENCE)
}

/// As [`read`], with the patience given; for whoever has been patient with a neighbour already.
pub(crate) fn read_for(
    way: &Way,
    dir: &Directory,
    name: &str,
    shape: Shape,
    patience: Duration,
) -> Result<Option<Snapshot>, Error> {
    let mut pause = Pause::new(patience, Duration::from_millis(10), Duration::from_millis(300));
    loop {
        let Some(snapshot) = read_raw(dir, name, shape.limit())? else { return Ok(None) };
        let Err(why) = checked(&snapshot.bytes, shape) else { return Ok(Some(snapshot)) };
        if !pause.wait() {
            let copy = way.aside.keep(&dir.join(name), &snapshot.bytes)?;
            return Err(Error::Corrupt { path: dir.join(name), why, copy });
        }
    }
}

fn checked(bytes: &[u8], shape: Shape) -> Result<(), String> {
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    shape.check(text).map_err(|error| error.to_string())
}

/// The file at `name` whatever it says; none if there is none.
pub(crate) fn read_raw(dir: &Directory, name: &str, limit: u64) -> Result<Option<Snapshot>, Error> {
    let path = dir.join(name);
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = match openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP) => return Err(Error::Odd { path, what: "a symbolic link" }),
        Err(Errno::ENXIO) => return Err(Error::Odd { path, what: "not a regular file" }),
        Err(errno) => return Err(Error::io("open", &path, errno)),
    };
    let stat = fstat(&fd).map_err(Error::at("look at", &path))?;
    if file_type(&stat) != SFlag::S_IFREG {
        return Err(Error::Odd { path, what: "not a regular file" });
    }
    let taken = SystemTime::now();
    let mut bytes = Vec::new();
    let mut file = File::from(fd).take(limit + 1);
    file.read_to_end(&mut bytes).map_err(|cause| Error::io("read", &path, cause))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { path, size: stat.st_size.unsigned_abs(), limit });
    }
    let identity = Identity::of(&stat);
    Ok(Some(Snapshot { bytes, identity, fresh: identity.is_fresh(taken), stat }))
}

/// True if `name` is as `before` says. Cheap, unless the snapshot was taken so soon after a change that
/// the time stamp can't tell.
pub(super) fn unchanged(dir: &Directory, name: &str, before: Option<&Snapshot>) -> Result<bool, Error> {
    let (stat, before) = match (dir.stat(name)?, before) {
        (Some(stat), Some(before)) => (stat, before),
        (stat, before) => return Ok(stat.is_none() && before.is_none()),
    };
    if Identity::of(&stat) != before.identity {
        return Ok(false);
    }
    // A read across a writer in place can mix two states even though the stamp is the later one.
    if !before.fresh && before.bytes.len() as i64 == before.identity.size {
        return Ok(true);
    }
    let now = read_raw(dir, name, before.bytes.len() as u64 + 1);
    Ok(matches!(now, Ok(Some(now)) if now.bytes == before.bytes))
}
