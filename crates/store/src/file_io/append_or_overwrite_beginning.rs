//! Appends to a file that only teamd writes, or overwrites its beginning.

use super::rename::rename;
use crate::directory_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::{Mode, SFlag, fstat};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

/// Appends `bytes`. If the file would grow beyond `limit` bytes, it is renamed to `NAME.1` first.
pub(crate) fn append(dir: &DirHandle, name: &str, bytes: &[u8], limit: u64) -> Result<(), Error> {
    append_bytes(dir, name, bytes, limit, TornLine::Keep)
}

/// Appends `line` like [`append`]. If a crash or a full disk left an incomplete last line in the
/// file, a line feed ends that line first.
pub(crate) fn append_line(dir: &DirHandle, name: &str, line: &str, limit: u64) -> Result<(), Error> {
    append_bytes(dir, name, format!("{line}\n").as_bytes(), limit, TornLine::Terminate)
}

/// What to do if the file's last line has no line feed.
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
    let (mut file, size) = open_to_append(dir, name)?;
    let bytes = match torn == TornLine::Terminate && has_torn_line(&file, size) {
        true => [b"\n", bytes].concat(),
        false => bytes.to_vec(),
    };
    // After a failed write, the file may end with a part of `bytes`. This part is not cut off,
    // because `tail -F` and similar programs read a truncated file again from the start.
    failpoint::hit_before_call("store.append")
        .and_then(|()| file.write_all(&bytes))
        .map_err(|cause| Error::io("write", &path, cause))?;
    failpoint::hit("store.appended");
    Ok(())
}

/// Appends whole lines. If a write fails, the file is as long as before, so that a later call can
/// append the same lines again. If a crash has left an incomplete last line, that line is removed
/// first.
pub(crate) fn append_whole_lines(dir: &DirHandle, name: &str, lines: &[u8]) -> Result<(), Error> {
    let (mut file, size) = open_to_append(dir, name)?;
    let io_error = |cause| Error::io("write", &dir.join(name), cause);
    let whole_size = size_of_whole_lines(&file, size).map_err(io_error)?;
    if whole_size < size {
        file.set_len(whole_size).map_err(io_error)?;
    }
    let written = failpoint::hit_before_call("record.append").and_then(|()| file.write_all(lines));
    written.map_err(|cause| {
        file.set_len(whole_size).ok();
        io_error(cause)
    })
}

/// The position after the last line feed in a file of `size` bytes.
fn size_of_whole_lines(file: &File, size: u64) -> std::io::Result<u64> {
    let (mut end, mut block) = (size, vec![0; 64 << 10]);
    while end > 0 && has_torn_line(file, end) {
        let start = end.saturating_sub(block.len() as u64);
        let length = usize::try_from(end - start).expect("a block fits into memory");
        file.read_exact_at(&mut block[..length], start)?;
        let line_feed = block[..length].iter().rposition(|byte| *byte == b'\n');
        end = line_feed.map_or(start, |position| start + position as u64 + 1);
    }
    Ok(end)
}

/// Appends `bytes`, unless the file would grow beyond `limit` bytes. If the disk becomes full, only
/// a part of `bytes` may be written.
pub(crate) fn append_if_fits(dir: &DirHandle, name: &str, bytes: &[u8], limit: u64) -> Result<(), Error> {
    let (mut file, size) = open_to_append(dir, name)?;
    if size + bytes.len() as u64 > limit {
        return Ok(());
    }
    failpoint::hit_before_call("journal.append")
        .and_then(|()| file.write_all(bytes))
        .map_err(|cause| Error::io("write", &dir.join(name), cause))?;
    failpoint::hit("journal.appended");
    Ok(())
}

/// Overwrites the beginning of a file with `bytes`. Creates the file if it is missing.
pub(crate) fn overwrite(dir: &DirHandle, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let (file, _) = open_to_write(dir, name, OFlag::empty())?;
    failpoint::hit_before_call("store.overwrite")
        .and_then(|()| file.write_all_at(bytes, 0))
        .map_err(|cause| Error::io("write", &dir.join(name), cause))
}

/// Opens a file for appending and returns its size. Creates the file if it is missing.
pub(super) fn open_to_append(dir: &DirHandle, name: &str) -> Result<(File, u64), Error> {
    open_to_write(dir, name, OFlag::O_APPEND)
}

fn open_to_write(dir: &DirHandle, name: &str, access_flags: OFlag) -> Result<(File, u64), Error> {
    let path = dir.join(name);
    let flags = access_flags
        | OFlag::O_RDWR
        | OFlag::O_CREAT
        | OFlag::O_NOFOLLOW
        | OFlag::O_NONBLOCK
        | OFlag::O_CLOEXEC;
    let fd =
        openat(dir, name, flags, Mode::S_IRUSR | Mode::S_IWUSR).map_err(Error::from_errno("open", &path))?;
    let stat = fstat(&fd).map_err(Error::from_errno("look at", &path))?;
    if file_type(&stat) != SFlag::S_IFREG {
        return Err(Error::UnexpectedFileType { path, what: "not a regular file" });
    }
    Ok((File::from(fd), stat.st_size.unsigned_abs()))
}

fn has_torn_line(file: &File, size: u64) -> bool {
    let mut last_byte = [0];
    size > 0 && file.read_exact_at(&mut last_byte, size - 1).is_ok() && last_byte != [b'\n']
}
