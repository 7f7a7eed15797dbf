//! Reads a long JSON array in chunks. Only one chunk is in memory at a time.
//!
//! The reader gives up if the file is not an array or if another program changes the file during
//! the read. The caller then uses [`read_and_parse`](super::read_with_version::read_and_parse),
//! which waits for a valid file or reports the error.

use super::file_version::FileVersion;
use super::read_with_version::{FileSnapshot, open_own_file};
use crate::directory_handle::DirHandle;
use crate::error::Error;
use nix::sys::stat::fstat;
use protocol::format_preserving_json;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::SystemTime;

/// Size of a chunk in bytes. A chunk with a longer element is larger.
const CHUNK_BYTES: u64 = 256 << 10;

/// A position in a JSON array, between two elements.
#[derive(Debug)]
pub(crate) struct ArrayReader {
    /// `None` if the first chunk holds the whole file.
    file: Option<File>,
    size: u64,
    /// The file's version when it was opened.
    version: Option<FileVersion>,
    /// See [`ArrayReader::stable_version`].
    stable_version: Option<FileVersion>,
    /// The current chunk: the file's bytes from `chunk_offset` on.
    bytes: Vec<u8>,
    chunk_offset: u64,
    /// Offset in `bytes` of the end of the last element that was read; 0 before the first.
    element_end: usize,
    /// Number of bytes before `element_end` that stay in memory.
    kept_before: usize,
    /// Whether the chunk reaches the end of the file.
    at_eof: bool,
    in_array: bool,
}

/// The file is not a JSON array, was changed while it was read, or can't be read.
#[derive(Debug)]
pub(crate) struct ArrayReadError;

impl From<std::io::Error> for ArrayReadError {
    fn from(_: std::io::Error) -> ArrayReadError {
        ArrayReadError
    }
}

impl ArrayReader {
    /// Opens the file `name` and positions the reader before the first element of its array. `None`
    /// if there is no such file. The reader keeps the last `kept_before` bytes before its position,
    /// for [`bytes_before`](ArrayReader::bytes_before).
    pub(crate) fn open(
        dir: &DirHandle,
        name: &str,
        kept_before: usize,
    ) -> Result<Option<ArrayReader>, Error> {
        let opening = SystemTime::now();
        let Some((file, stat)) = open_own_file(dir, name)? else { return Ok(None) };
        let version = FileVersion::from_stat(&stat);
        let stable_version = (!version.is_recently_changed(opening)).then_some(version);
        let (bytes, size) = (Vec::new(), version.size());
        let (file, version) = (Some(file), Some(version));
        Ok(Some(ArrayReader {
            file,
            size,
            version,
            stable_version,
            bytes,
            chunk_offset: 0,
            element_end: 0,
            kept_before,
            at_eof: false,
            in_array: false,
        }))
    }

    /// Reads from a snapshot of the whole file, from the first element on.
    pub(crate) fn from_snapshot(snapshot: FileSnapshot, kept_before: usize) -> ArrayReader {
        let (settled, bytes) = (snapshot.stable_version(), snapshot.into_bytes());
        let size = bytes.len() as u64;
        let (file, version) = (None, None);
        ArrayReader {
            file,
            size,
            version,
            stable_version: settled,
            bytes,
            chunk_offset: 0,
            element_end: 0,
            kept_before,
            at_eof: true,
            in_array: false,
        }
    }

    /// Moves back to the first element.
    pub(crate) fn rewind(&mut self) -> Result<(), ArrayReadError> {
        if let Some(file) = &mut self.file {
            file.rewind()?;
            self.bytes.clear();
            (self.chunk_offset, self.at_eof) = (0, false);
        }
        (self.element_end, self.in_array) = (0, false);
        Ok(())
    }

    /// Moves the reader to the offset `end`, where an element ended in an earlier read of the file.
    /// The file may have changed since that read. So the caller must check that
    /// [`bytes_before`](ArrayReader::bytes_before) returns the same bytes as in the earlier read.
    pub(crate) fn seek_after(&mut self, end: u64) -> Result<(), ArrayReadError> {
        self.chunk_offset = end.saturating_sub(self.kept_before as u64);
        self.file.as_mut().ok_or(ArrayReadError)?.seek(SeekFrom::Start(self.chunk_offset))?;
        self.element_end = (end - self.chunk_offset) as usize;
        while self.bytes.len() < self.element_end {
            self.read_more()?;
        }
        self.in_array = true;
        Ok(())
    }

    /// The file's size in bytes when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Offset in the file of the end of the last element that was read.
    pub(crate) fn end(&self) -> u64 {
        self.chunk_offset + self.element_end as u64
    }

    /// Up to `kept_before` bytes before [`end`](ArrayReader::end).
    pub(crate) fn bytes_before(&self) -> &[u8] {
        &self.bytes[self.element_end.saturating_sub(self.kept_before)..self.element_end]
    }

    /// The version (inode, size and timestamps) that the file had when it was opened. The caller
    /// compares it later to find out whether the file has changed. `None` if a later change could
    /// leave the version as it is, or if the file was renamed or replaced during the read.
    ///
    /// # Errors
    /// [`ArrayReadError`] if a program has written to the file since it was opened.
    pub(crate) fn stable_version(&self) -> Result<Option<FileVersion>, ArrayReadError> {
        let (Some(file), Some(opened_version)) = (&self.file, &self.version) else {
            return Ok(self.stable_version);
        };
        let current_version = FileVersion::from_stat(&fstat(file).map_err(|_| ArrayReadError)?);
        if !current_version.is_same_after_rename(opened_version) {
            return Err(ArrayReadError);
        }
        Ok(self.stable_version.filter(|opened_version| *opened_version == current_version))
    }

    /// The text of the next element, unchanged. `None` at the end of the array.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ArrayReadError> {
        if self.file.is_some() && self.element_end as u64 > CHUNK_BYTES {
            self.drop_consumed();
        }
        let Some(start) = self.next_start()? else { return Ok(None) };
        let length = loop {
            match format_preserving_json::parse_first(&self.bytes[start..]) {
                // A number at the end of the chunk may go on in the next chunk.
                Ok(Some((value, end))) if self.at_eof || start + end < self.bytes.len() => {
                    self.element_end = start + end;
                    break value.get().len();
                }
                // An incomplete value such as `1.` may go on in the next chunk.
                _ => self.read_more()?,
            }
        };
        let text = std::str::from_utf8(&self.bytes[self.element_end - length..self.element_end]);
        text.map(Some).map_err(|_| ArrayReadError)
    }

    /// Offset in `bytes` of the next element or of the white space before it. `None` at the end.
    fn next_start(&mut self) -> Result<Option<usize>, ArrayReadError> {
        let (byte, position) = self.next_token(self.element_end)?.ok_or(ArrayReadError)?;
        match (byte, std::mem::replace(&mut self.in_array, true)) {
            (b',', true) => Ok(Some(position + 1)),
            (b']', true) => self.expect_end(position + 1),
            (b'[', false) => match self.next_token(position + 1)? {
                Some((b']', end)) => self.expect_end(end + 1),
                Some(_) => Ok(Some(position + 1)),
                None => Err(ArrayReadError),
            },
            _ => Err(ArrayReadError),
        }
    }

    /// Checks that only white space follows the closing bracket. `element_end` stays unchanged.
    fn expect_end(&mut self, start: usize) -> Result<Option<usize>, ArrayReadError> {
        if self.next_token(start)?.is_none() { Ok(None) } else { Err(ArrayReadError) }
    }

    /// The first byte at or after the offset `position` that is neither white space nor part of a
    /// byte order mark. Returns the byte and its offset.
    fn next_token(&mut self, position: usize) -> Result<Option<(u8, usize)>, ArrayReadError> {
        let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let mut position = position;
        loop {
            if !self.in_array && position == 0 && self.bytes.starts_with("\u{feff}".as_bytes()) {
                position = 3;
            }
            match self.bytes[position..].iter().position(|byte| !is_blank(*byte)) {
                Some(offset) => return Ok(Some((self.bytes[position + offset], position + offset))),
                None if self.at_eof => return Ok(None),
                None => self.read_more()?,
            }
        }
    }

    /// Reads as many bytes as are in memory already, at least `CHUNK_BYTES`.
    fn read_more(&mut self) -> Result<(), ArrayReadError> {
        let file = self.file.as_ref().filter(|_| !self.at_eof).ok_or(ArrayReadError)?;
        let limit = CHUNK_BYTES.max(self.bytes.len() as u64);
        let count = file.take(limit).read_to_end(&mut self.bytes)?;
        self.at_eof = (count as u64) < limit;
        Ok(())
    }

    /// Drops the bytes before `element_end`, except the last `kept_before`.
    fn drop_consumed(&mut self) {
        let dropped = self.element_end.saturating_sub(self.kept_before);
        self.bytes.drain(..dropped);
        (self.chunk_offset, self.element_end) =
            (self.chunk_offset + dropped as u64, self.element_end - dropped);
    }
}
