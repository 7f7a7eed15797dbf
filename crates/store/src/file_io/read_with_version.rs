//! Reads a file together with its version, which shows later whether the file has changed. Opening
//! never blocks, follows no symbolic link, and accepts regular files only. If the text can't be
//! parsed, another program may be in the middle of a write. The file is then read again for up to
//! two seconds.

use super::durability_and_backup_options::IoOptions;
use super::file_version::FileVersion;
use super::json_type_and_size_limit::JsonShape;
use crate::backoff::Backoff;
use crate::check_no_other_user_can_write::check_own_access;
use crate::directory_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::errno::Errno;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};
use nix::unistd::geteuid;
use protocol::format_preserving_json;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::time::{Duration, SystemTime};

/// How long an unparsable file counts as half-written, from its last change on.
pub(crate) const HALF_WRITTEN_TIMEOUT: Duration = Duration::from_secs(2);

/// The content of a file, and the version by which a later change is detected.
#[derive(Debug, Clone)]
pub(crate) struct FileSnapshot {
    bytes: Vec<u8>,
    version: FileVersion,
    /// Whether the file had been changed shortly before this snapshot was read. If so, a later
    /// change may get the same timestamp.
    recently_changed: bool,
    stat: FileStat,
}

impl FileSnapshot {
    /// Makes a snapshot of the file `name` from `text`, which was read earlier, when the file had
    /// the version `version`. `None` if the file no longer has this version.
    pub(crate) fn from_cache(
        dir: &DirHandle,
        name: &str,
        version: FileVersion,
        text: &str,
    ) -> Result<Option<FileSnapshot>, Error> {
        let stat = dir.stat(name)?.filter(|stat| FileVersion::from_stat(stat) == version);
        Ok(stat.map(|stat| FileSnapshot {
            bytes: text.as_bytes().to_vec(),
            version,
            recently_changed: false,
            stat,
        }))
    }

    /// The content as text. Empty if it is not UTF-8, which a snapshot from [`read`] never is.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// The content as bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The content as bytes, without a copy.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The file's version, to detect later changes. `None` if the file was changed shortly before
    /// the read or during the read: a later change might then get the same timestamp and go
    /// unnoticed.
    pub(crate) fn stable_version(&self) -> Option<FileVersion> {
        (!self.recently_changed && self.bytes.len() as u64 == self.version.size()).then_some(self.version)
    }

    /// The permission bits for the file that replaces this one. They never let the group or others
    /// write, because the new file may belong to a different group: some directories give their own
    /// group to new files.
    pub(super) fn mode(&self) -> u32 {
        platform::mode_bits(self.stat.st_mode) & 0o7755
    }

    /// Rejects a file that has several hard links or belongs to another user. Replacing the file by
    /// a rename would separate it from its other names, or change its owner.
    pub(super) fn check_replaceable(&self, dir: &DirHandle, name: &str) -> Result<(), Error> {
        let reject = |what| Err(Error::UnexpectedFileType { path: dir.join(name), what });
        if self.stat.st_nlink > 1 {
            return reject("a file with another name (hard link)");
        }
        if self.stat.st_uid != geteuid().as_raw() {
            return reject("another user's file");
        }
        Ok(())
    }
}

/// Reads the file `name` and checks its JSON type. `None` if there is no such file.
///
/// # Errors
/// [`Error::Corrupt`] if the text can't be parsed during two seconds; a copy of the damaged file is
/// then stored in the state directory. `Io`, `TooLarge`, `UnexpectedFileType`.
pub(crate) fn read(
    io: &IoOptions,
    dir: &DirHandle,
    name: &str,
    shape: JsonShape,
) -> Result<Option<FileSnapshot>, Error> {
    let read = read_and_parse(io, dir, name, shape.limit(), HALF_WRITTEN_TIMEOUT, |text| shape.check(text))?;
    Ok(read.map(|(snapshot, ())| snapshot))
}

/// Reads the file `name` and parses its text. `None` if there is no such file. If the text can't be
/// parsed, the file is read again. The read fails when the file has been invalid and unchanged for
/// `timeout`.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_and_parse<T>(
    io: &IoOptions,
    dir: &DirHandle,
    name: &str,
    limit: u64,
    timeout: Duration,
    mut parse: impl FnMut(&str) -> Result<T, format_preserving_json::JsonError>,
) -> Result<Option<(FileSnapshot, T)>, Error> {
    let mut backoff = None;
    loop {
        let Some(snapshot) = read_raw(dir, name, limit)? else { return Ok(None) };
        let reason = match parse_bytes(&snapshot.bytes, &mut parse) {
            Ok(parsed) => return Ok(Some((snapshot, parsed))),
            Err(reason) => reason,
        };
        let backoff = match &mut backoff {
            Some(backoff) => backoff,
            empty => empty.insert(half_written_backoff(dir, name, timeout)?),
        };
        if !backoff.wait() {
            let copy = io.backups.save(&dir.join(name), &snapshot.bytes)?;
            return Err(Error::Corrupt { path: dir.join(name), reason, backup: copy });
        }
    }
}

/// The backoff for a caller that has read a half-written file and will read it again. The backoff
/// ends when the file has been unchanged for `timeout`.
pub(crate) fn half_written_backoff(dir: &DirHandle, name: &str, timeout: Duration) -> Result<Backoff, Error> {
    let unchanged_for = || {
        FileVersion::stat_file(dir, name)
            .map(|version| version.map_or(Duration::ZERO, |version| version.age()))
    };
    let (first_step, max_step) = (Duration::from_millis(10), Duration::from_millis(300));
    let mut remaining = timeout.saturating_sub(unchanged_for()?);
    if remaining.is_zero() && !timeout.is_zero() {
        // When a program truncates a file, the kernel sets the new size before the new timestamp.
        // On a busy machine, time may pass between these two steps. So if a file is empty and its
        // timestamp is old, this function waits longer before it reads the timestamp again.
        let is_empty = dir.stat(name)?.is_some_and(|stat| stat.st_size == 0);
        let grace = if is_empty { first_step * 10 } else { first_step };
        Backoff::new(grace, grace, grace).wait();
        remaining = timeout.saturating_sub(unchanged_for()?);
    }
    Ok(Backoff::new(remaining, first_step, max_step))
}

fn parse_bytes<T>(
    bytes: &[u8],
    parse: impl FnOnce(&str) -> Result<T, format_preserving_json::JsonError>,
) -> Result<T, String> {
    if bytes.is_empty() {
        return Err("it is empty".to_owned());
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    parse(text).map_err(|error| error.to_string())
}

/// Reads the file `name` without parsing it. `None` if there is no such file.
///
/// # Errors
/// `TooLarge` if the file has more than `limit` bytes; `Untrusted` if another user owns it or can
/// write to it; `Io`, `UnexpectedFileType`.
pub(crate) fn read_raw(dir: &DirHandle, name: &str, limit: u64) -> Result<Option<FileSnapshot>, Error> {
    read_opened(dir, name, open_own_file(dir, name)?, limit)
}

/// Reads the file `name` like [`read_raw`], but accepts a file that another user owns or can write
/// to. Used for the settings of other programs.
pub(crate) fn read_foreign(dir: &DirHandle, name: &str, limit: u64) -> Result<Option<FileSnapshot>, Error> {
    read_opened(dir, name, open_regular_file(dir, name)?, limit)
}

fn read_opened(
    dir: &DirHandle,
    name: &str,
    file_and_stat: Option<(File, FileStat)>,
    limit: u64,
) -> Result<Option<FileSnapshot>, Error> {
    let Some((file, stat)) = file_and_stat else { return Ok(None) };
    let read_at = SystemTime::now();
    let size = stat.st_size.unsigned_abs();
    let bytes = read_bytes(file, size, limit).map_err(|cause| Error::io("read", &dir.join(name), cause))?;
    if bytes.len() as u64 > limit {
        return Err(Error::TooLarge { path: dir.join(name), size, limit });
    }
    let version = FileVersion::from_stat(&stat);
    Ok(Some(FileSnapshot { bytes, version, recently_changed: version.is_recently_changed(read_at), stat }))
}

/// Reads the content of a file. Stops after `limit` + 1 bytes, so that the caller can detect a file
/// that is too large. `size` is the expected size; if it is right, one read call is enough.
fn read_bytes(mut file: File, size: u64, limit: u64) -> std::io::Result<Vec<u8>> {
    let buffer_size = size.min(limit) as usize + 1;
    let mut bytes = vec![0; buffer_size];
    let count = loop {
        match file.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            count => break count?,
        }
    };
    bytes.truncate(count);
    // The buffer is larger than `size`. So if the first read returned exactly `size` bytes, the end
    // of the file is reached.
    if count as u64 != size {
        file.take((limit + 1).saturating_sub(count as u64)).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Fails with `TooLarge` if `size` is more than `limit`.
pub(crate) fn check_size(dir: &DirHandle, name: &str, size: u64, limit: u64) -> Result<(), Error> {
    if size > limit { Err(Error::TooLarge { path: dir.join(name), size, limit }) } else { Ok(()) }
}

/// Opens the regular file `name` for reading. `None` if there is no such file.
pub(crate) fn open_for_reading(dir: &DirHandle, name: &str) -> Result<Option<File>, Error> {
    Ok(open_own_file(dir, name)?.map(|(file, _)| file))
}

/// Opens the regular file `name` for reading, if the current user owns it and no other user can
/// write to it. Returns the file and its status, or `None` if there is no such file.
pub(super) fn open_own_file(dir: &DirHandle, name: &str) -> Result<Option<(File, FileStat)>, Error> {
    let file_and_stat = open_regular_file(dir, name)?;
    if let Some((file, stat)) = &file_and_stat {
        check_own_access(file, stat, &dir.join(name))?;
    }
    Ok(file_and_stat)
}

fn open_regular_file(dir: &DirHandle, name: &str) -> Result<Option<(File, FileStat)>, Error> {
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let reject = |what| Err(Error::UnexpectedFileType { path: dir.join(name), what });
    let fd = match openat(dir, name, flags, Mode::empty()) {
        Ok(fd) => fd,
        // Another process has just replaced the file, and holds a lease on the old file to
        // overwrite it (see `tail_rewrite`). A second attempt opens the new file.
        Err(Errno::EWOULDBLOCK) => match openat(dir, name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(errno) => return Err(Error::io("open", &dir.join(name), errno)),
        },
        Err(Errno::ENOENT) => return Ok(None),
        Err(Errno::ELOOP) => return reject("a symbolic link"),
        Err(Errno::ENXIO) => return reject("not a regular file"),
        Err(errno) => return Err(Error::io("open", &dir.join(name), errno)),
    };
    let stat = fstat(&fd).map_err(|errno| Error::io("look at", &dir.join(name), errno))?;
    if file_type(&stat) != SFlag::S_IFREG {
        return reject("not a regular file");
    }
    Ok(Some((File::from(fd), stat)))
}

/// Whether the file `name` is unchanged since `snapshot`. `None` as the snapshot means that the
/// file was missing. The content is read again only if the timestamps of the snapshot can't show a
/// change.
pub(super) fn is_unchanged(
    dir: &DirHandle,
    name: &str,
    snapshot: Option<&FileSnapshot>,
) -> Result<bool, Error> {
    let (stat, snapshot) = match (dir.stat(name)?, snapshot) {
        (Some(stat), Some(snapshot)) => (stat, snapshot),
        (stat, snapshot) => return Ok(stat.is_none() && snapshot.is_none()),
    };
    if FileVersion::from_stat(&stat) != snapshot.version {
        return Ok(false);
    }
    // The versions are equal. But if the file was changed shortly before or during the snapshot's
    // read, a later write may have the same timestamp. In this case, the contents are compared.
    if snapshot.stable_version().is_some() {
        return Ok(true);
    }
    let current = read_raw(dir, name, snapshot.bytes.len() as u64 + 1);
    Ok(matches!(current, Ok(Some(current)) if current.bytes == snapshot.bytes))
}

#[cfg(test)]
mod tests {
    use super::super::file_version::TIMESTAMP_RESOLUTION;
    use super::*;
    use std::time::UNIX_EPOCH;

    /// On kernels with multigrain timestamps, no other test would notice an error here.
    #[test]
    fn a_version_read_within_one_clock_tick_of_its_change_is_not_stable() {
        let changed = (1_771_000_000, 999_000_000);
        let version = FileVersion { device: 1, inode: 2, size: 3, modified: (0, 0), changed };
        let time_at = |milliseconds: u64| UNIX_EPOCH + Duration::from_millis(milliseconds);
        let changed_ms = 1_771_000_000_999;
        assert!(
            version.is_recently_changed(time_at(changed_ms))
                && version.is_recently_changed(time_at(changed_ms + 49))
        );
        assert!(!version.is_recently_changed(time_at(changed_ms + 50)), "the clock tick has passed");
        assert!(version.is_recently_changed(time_at(changed_ms - 60_000)), "the clock was set back");
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test writes in place like a foreign program")]
    fn a_file_truncated_during_the_read_is_read_again_although_it_was_old() {
        let temp = tempfile::TempDir::new().unwrap();
        let (dir, path) = (DirHandle::open(temp.path()).unwrap(), temp.path().join("1.json"));
        let io = IoOptions {
            durability: crate::Durability::Process,
            backups: crate::file_io::corrupt_backup::CorruptBackups::new_disabled(),
        };
        let (timeout, rewrite) = (Duration::from_secs(1), |text: &str| std::fs::write(&path, text).unwrap());
        rewrite("old");
        let mut backoff = Backoff::new(timeout + TIMESTAMP_RESOLUTION, timeout, timeout);
        while backoff.wait() {}
        let mut reads = 0;
        let parse = |text: &str| {
            reads += 1;
            // The first read finds a half-written file.
            if reads == 1 {
                rewrite("new");
            }
            if text == "new" { Ok(()) } else { format_preserving_json::Object::parse("").map(drop) }
        };
        let read = read_and_parse(&io, &dir, "1.json", 100, timeout, parse).unwrap().unwrap();
        assert_eq!((read.0.text(), reads), ("new", 2));
    }
}
