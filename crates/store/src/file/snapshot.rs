//! A file as it was at one moment, and whether it still is. Opening never blocks, follows no link, and takes
//! regular files only. A text that does not parse is looked at again for a while: a foreign writer that
//! truncates in place may be in the middle.

use super::file_version::FileVersion;
use super::io_context::IoContext;
use super::shape::JsonShape;
use crate::backoff::Backoff;
use crate::dir_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::geteuid;
use protocol::json;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::time::{Duration, SystemTime};

/// How long a text that does not parse is taken for one that is being written.
pub(crate) const HALF_WRITTEN_TIMEOUT: Duration = Duration::from_secs(2);

/// A file's bytes with what tells whether it has changed since.
#[derive(Debug, Clone)]
pub(crate) struct FileSnapshot {
    bytes: Vec<u8>,
    identity: FileVersion,
    recently_changed: bool,
    stat: FileStat,
}

impl FileSnapshot {
    /// The file at `name` as it was when it said `text`; none where it has changed since.
    pub(crate) fn from_cache(
        dir: &DirHandle,
        name: &str,
        identity: FileVersion,
        text: &str,
    ) -> Result<Option<FileSnapshot>, Error> {
        let stat = dir.stat(name)?.filter(|stat| FileVersion::from_stat(stat) == identity);
        Ok(stat.map(|stat| FileSnapshot {
            bytes: text.as_bytes().to_vec(),
            identity,
            recently_changed: false,
            stat,
        }))
    }

    /// The text; only snapshots that have one are handed out by [`read`].
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// The bytes, whether they are a text or not.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, for readers that care for nothing else.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// By what the file is known to be unchanged as long as `stat` says the same; none if it was read so soon
    /// after a change, or across one, that `stat` can't tell.
    pub(crate) fn stable_version(&self) -> Option<FileVersion> {
        (!self.recently_changed && self.bytes.len() as u64 == self.identity.size()).then_some(self.identity)
    }

    /// The permission bits, for the file that comes in its place.
    pub(super) fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    /// Refuses what a rename would tear from its other name, or from its owner.
    pub(super) fn check_replaceable(&self, dir: &DirHandle, name: &str) -> Result<(), Error> {
        let odd = |what| Err(Error::UnexpectedFileType { path: dir.join(name), what });
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
pub(crate) fn read(
    way: &IoContext,
    dir: &DirHandle,
    name: &str,
    shape: JsonShape,
) -> Result<Option<FileSnapshot>, Error> {
    let read = read_and_parse(way, dir, name, shape.limit(), HALF_WRITTEN_TIMEOUT, |text| shape.check(text))?;
    Ok(read.map(|(snapshot, ())| snapshot))
}

/// As [`read`], with what `parse` makes of the text, so that it is looked through once, and the patience
/// given, for whoever has been patient with a neighbour already.
pub(crate) fn read_and_parse<T>(
    way: &IoContext,
    dir: &DirHandle,
    name: &str,
    limit: u64,
    patience: Duration,
    mut parse: impl FnMut(&str) -> Result<T, json::JsonError>,
) -> Result<Option<(FileSnapshot, T)>, Error> {
    let mut pause = None;
    loop {
        let Some(snapshot) = read_raw(dir, name, limit)? else { return Ok(None) };
        let why = match parse_bytes(&snapshot.bytes, &mut parse) {
            Ok(parsed) => return Ok(Some((snapshot, parsed))),
            Err(why) => why,
        };
        let pause = match &mut pause {
            Some(pause) => pause,
            none => none.insert(half_written_backoff(dir, name, patience)?),
        };
        if !pause.wait() {
            let copy = way.backups.save(&dir.join(name), &snapshot.bytes)?;
            return Err(Error::Corrupt { path: dir.join(name), reason: why, backup: copy });
        }
    }
}

/// The wait for whoever is in the middle of writing it, and has been so for as long as it has not changed: by a look behind
/// the read, since it may have been truncated between the look before and the read.
pub(crate) fn half_written_backoff(
    dir: &DirHandle,
    name: &str,
    patience: Duration,
) -> Result<Backoff, Error> {
    let standing =
        || FileVersion::stat_file(dir, name).map(|now| now.map_or(Duration::ZERO, |now| now.age()));
    let (first, longest) = (Duration::from_millis(10), Duration::from_millis(300));
    let mut left = patience.saturating_sub(standing()?);
    if left.is_zero() && !patience.is_zero() {
        // The kernel shows that a file was truncated before it shows when.
        Backoff::new(first, first, first).wait();
        left = patience.saturating_sub(standing()?);
    }
    Ok(Backoff::new(left, first, longest))
}

fn parse_bytes<T>(bytes: &[u8], parse: impl FnOnce(&str) -> Result<T, json::JsonError>) -> Result<T, String> {
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    parse(text).map_err(|error| error.to_string())
}

/// The file at `name` whatever it says; none if there is none.
pub(crate) fn read_raw(dir: &DirHandle, name: &str, limit: u64) -> Result<Option<FileSnapshot>, Error> {
    let Some((file, stat)) = open_regular_file(dir, name)? else { return Ok(None) };
    let taken = SystemTime::now();
    let size = stat.st_size.unsigned_abs();
    let bytes = read_bytes(file, size, limit).map_err(|cause| Error::io("read", &dir.join(name), cause))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { path: dir.join(name), size, limit });
    }
    let identity = FileVersion::from_stat(&stat);
    Ok(Some(FileSnapshot { bytes, identity, recently_changed: identity.is_recently_changed(taken), stat }))
}

/// The bytes of a file of `size`, up to one beyond `limit`; in one call where it is of that size.
fn read_bytes(mut file: File, size: u64, limit: u64) -> std::io::Result<Vec<u8>> {
    let room = size.min(limit) as usize + 1;
    let mut bytes = vec![0; room];
    let read = loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    bytes.truncate(read);
    // All that should be there, with room for more left: that was the end.
    if read as u64 != size {
        file.take((limit + 1).saturating_sub(read as u64)).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Refuses a `size` beyond `limit`.
pub(super) fn check_size(dir: &DirHandle, name: &str, size: u64, limit: u64) -> Result<(), Error> {
    if size > limit { Err(Error::TooLarge { path: dir.join(name), size, limit }) } else { Ok(()) }
}

/// The regular file at `name`, whatever its size; none if there is none.
pub(crate) fn open_for_reading(dir: &DirHandle, name: &str) -> Result<Option<File>, Error> {
    Ok(open_regular_file(dir, name)?.map(|(file, _)| file))
}

/// The regular file at `name`, opened for reading; none if there is none.
pub(super) fn open_regular_file(dir: &DirHandle, name: &str) -> Result<Option<(File, FileStat)>, Error> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let odd = |what| Err(Error::UnexpectedFileType { path: dir.join(name), what });
    let fd = match openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        // It was exchanged in this moment and is being written to (`end`); its name leads to another one by now.
        Err(Errno::EWOULDBLOCK) => match openat(dir, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(errno) => return Err(Error::io("open", &dir.join(name), errno)),
        },
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP) => return odd("a symbolic link"),
        Err(Errno::ENXIO) => return odd("not a regular file"),
        Err(errno) => return Err(Error::io("open", &dir.join(name), errno)),
    };
    let stat = fstat(&fd).map_err(|errno| Error::io("look at", &dir.join(name), errno))?;
    if file_type(&stat) != SFlag::S_IFREG {
        return odd("not a regular file");
    }
    Ok(Some((File::from(fd), stat)))
}

/// True if `name` is as `before` says. Cheap, unless the snapshot was taken so soon after a change that
/// the time stamp can't tell.
pub(super) fn is_unchanged(
    dir: &DirHandle,
    name: &str,
    before: Option<&FileSnapshot>,
) -> Result<bool, Error> {
    let (stat, before) = match (dir.stat(name)?, before) {
        (Some(stat), Some(before)) => (stat, before),
        (stat, before) => return Ok(stat.is_none() && before.is_none()),
    };
    if FileVersion::from_stat(&stat) != before.identity {
        return Ok(false);
    }
    // A read across a writer in place can mix two states even though the stamp is the later one.
    if before.stable_version().is_some() {
        return Ok(true);
    }
    let now = read_raw(dir, name, before.bytes.len() as u64 + 1);
    Ok(matches!(now, Ok(Some(now)) if now.bytes == before.bytes))
}

#[cfg(test)]
mod tests {
    use super::super::file_version::TIMESTAMP_RESOLUTION;
    use super::*;
    use std::time::UNIX_EPOCH;

    /// Kernels with fine time stamps never get into this, so no test from outside can show it.
    #[test]
    fn what_was_read_within_a_tick_of_its_change_is_not_trusted() {
        let changed = (1_771_000_000, 999_000_000);
        let identity = FileVersion { device: 1, inode: 2, size: 3, modified: (0, 0), changed };
        let at = |milliseconds: u64| UNIX_EPOCH + Duration::from_millis(milliseconds);
        let stamp = 1_771_000_000_999;
        assert!(identity.is_recently_changed(at(stamp)) && identity.is_recently_changed(at(stamp + 49)));
        assert!(!identity.is_recently_changed(at(stamp + 50)), "long enough");
        assert!(identity.is_recently_changed(at(stamp - 60_000)), "a clock that was set back tells nothing");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "this is the writer in place")]
    fn what_was_truncated_while_it_was_read_is_waited_for_although_it_was_old() {
        let temp = tempfile::TempDir::new().unwrap();
        let (dir, path) = (DirHandle::open(temp.path()).unwrap(), temp.path().join("1.json"));
        let way = IoContext {
            durability: crate::Durability::Process,
            backups: crate::file::corrupt_backup::CorruptBackups::new_disabled(),
        };
        let (patience, rewrite) = (Duration::from_secs(1), |text: &str| std::fs::write(&path, text).unwrap());
        rewrite("old");
        let mut pause = Backoff::new(patience + TIMESTAMP_RESOLUTION, patience, patience);
        while pause.wait() {}
        let mut looks = 0;
        let parse = |text: &str| {
            looks += 1;
            // What the first look found is what a writer in place leaves for a moment.
            if looks == 1 {
                rewrite("new");
            }
            if text == "new" { Ok(()) } else { json::Object::parse("").map(drop) }
        };
        let read = read_and_parse(&way, &dir, "1.json", 100, patience, parse).unwrap().unwrap();
        assert_eq!((read.0.text(), looks), ("new", 2));
    }
}
