//! Adds to the end of a file of ours, or overwrites its beginning. No other program writes such a file.

use super::rename::rename;
use crate::dir_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

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
    if file_type(&stat) != SFlag::S_IFREG {
        return Err(Error::UnexpectedFileType { path, what: "not a regular file" });
    }
    Ok((File::from(fd), stat.st_size.unsigned_abs()))
}

fn has_torn_line(file: &File, size: u64) -> bool {
    let mut last = [0];
    size > 0 && file.read_exact_at(&mut last, size - 1).is_ok() && last != [b'\n']
}
