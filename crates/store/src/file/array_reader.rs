//! Reads a long JSON array in parts. Only one part is in memory at a time.
//!
//! The reader gives up if the file is not an array or changes meanwhile. The caller then uses
//! [`read_and_parse`](super::snapshot::read_and_parse), which waits and reports the error.

use super::file_version::FileVersion;
use super::snapshot::{FileSnapshot, open_regular_file};
use crate::dir_handle::DirHandle;
use crate::error::Error;
use nix::sys::stat::fstat;
use protocol::json;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::SystemTime;

/// The bytes of a part, unless an element is longer.
const CHUNK_BYTES: u64 = 256 << 10;

/// A place in an array.
#[derive(Debug)]
pub(crate) struct ArrayReader {
    /// None where the part is all there is.
    file: Option<File>,
    size: u64,
    /// The file when it was opened; and by what it is known to be unchanged.
    identity: Option<FileVersion>,
    stable_version: Option<FileVersion>,
    /// The part: bytes of the file from `start` on.
    bytes: Vec<u8>,
    chunk_offset: u64,
    /// So many of them end with the last element that was looked at, or are before the first.
    element_end: usize,
    /// So many before that are kept.
    kept_before: usize,
    /// There is nothing in the file behind the part.
    at_eof: bool,
    in_array: bool,
}

/// It is no array, or another one by now, or can't be read.
#[derive(Debug)]
pub(crate) struct ArrayReadError;

impl From<std::io::Error> for ArrayReadError {
    fn from(_: std::io::Error) -> ArrayReadError {
        ArrayReadError
    }
}

impl ArrayReader {
    /// At the start of `name`; none if there is no such file. The `shown` bytes before a place are kept.
    pub(crate) fn open(dir: &DirHandle, name: &str, shown: usize) -> Result<Option<ArrayReader>, Error> {
        let opening = SystemTime::now();
        let Some((file, stat)) = open_regular_file(dir, name)? else { return Ok(None) };
        let identity = FileVersion::from_stat(&stat);
        let settled = (!identity.is_recently_changed(opening)).then_some(identity);
        let (bytes, size) = (Vec::new(), identity.size());
        let (file, identity) = (Some(file), Some(identity));
        Ok(Some(ArrayReader {
            file,
            size,
            identity,
            stable_version: settled,
            bytes,
            chunk_offset: 0,
            element_end: 0,
            kept_before: shown,
            at_eof: false,
            in_array: false,
        }))
    }

    /// At the start of what was read whole.
    pub(crate) fn from_snapshot(snapshot: FileSnapshot, shown: usize) -> ArrayReader {
        let (settled, bytes) = (snapshot.stable_version(), snapshot.into_bytes());
        let size = bytes.len() as u64;
        let (file, identity) = (None, None);
        ArrayReader {
            file,
            size,
            identity,
            stable_version: settled,
            bytes,
            chunk_offset: 0,
            element_end: 0,
            kept_before: shown,
            at_eof: true,
            in_array: false,
        }
    }

    /// Goes back to the start.
    pub(crate) fn rewind(&mut self) -> Result<(), ArrayReadError> {
        if let Some(file) = &mut self.file {
            file.rewind()?;
            self.bytes.clear();
            (self.chunk_offset, self.at_eof) = (0, false);
        }
        (self.element_end, self.in_array) = (0, false);
        Ok(())
    }

    /// Goes to behind an element that ends at `end` bytes; what stands before it is for the caller to know it by.
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

    /// Bytes of the file when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Where the last element that was looked at ends, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.chunk_offset + self.element_end as u64
    }

    /// The bytes before that, as many as are to be shown, or as there are.
    pub(crate) fn bytes_before(&self) -> &[u8] {
        &self.bytes[self.element_end.saturating_sub(self.kept_before)..self.element_end]
    }

    /// By what the file is known to be unchanged; none where that can't be told, or another one is at its place by now.
    ///
    /// # Errors
    /// Where it has changed since it was opened.
    pub(crate) fn stable_version(&self) -> Result<Option<FileVersion>, ArrayReadError> {
        let (Some(file), Some(before)) = (&self.file, &self.identity) else { return Ok(self.stable_version) };
        let now = FileVersion::from_stat(&fstat(file).map_err(|_| ArrayReadError)?);
        if !now.is_same_after_rename(before) {
            return Err(ArrayReadError);
        }
        Ok(self.stable_version.filter(|before| *before == now))
    }

    /// The next element, as it is spelled; none at the end of the array.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ArrayReadError> {
        if self.file.is_some() && self.element_end as u64 > CHUNK_BYTES {
            self.drop_consumed();
        }
        let Some(from) = self.next_start()? else { return Ok(None) };
        let length = loop {
            match json::parse_first(&self.bytes[from..]) {
                // A number that ends where the part does may go on.
                Ok(Some((value, end))) if self.at_eof || from + end < self.bytes.len() => {
                    self.element_end = from + end;
                    break value.get().len();
                }
                // So may one that is none yet: `1.` for example.
                _ => self.read_more()?,
            }
        };
        let text = std::str::from_utf8(&self.bytes[self.element_end - length..self.element_end]);
        text.map(Some).map_err(|_| ArrayReadError)
    }

    /// Where the next element begins, or the white space before it.
    fn next_start(&mut self) -> Result<Option<usize>, ArrayReadError> {
        let (sign, at) = self.next_token(self.element_end)?.ok_or(ArrayReadError)?;
        match (sign, std::mem::replace(&mut self.in_array, true)) {
            (b',', true) => Ok(Some(at + 1)),
            (b']', true) => self.expect_end(at + 1),
            (b'[', false) => match self.next_token(at + 1)? {
                Some((b']', end)) => self.expect_end(end + 1),
                Some(_) => Ok(Some(at + 1)),
                None => Err(ArrayReadError),
            },
            _ => Err(ArrayReadError),
        }
    }

    /// Nothing may stand there any more. The end stays where the last element has it.
    fn expect_end(&mut self, at: usize) -> Result<Option<usize>, ArrayReadError> {
        if self.next_token(at)?.is_none() { Ok(None) } else { Err(ArrayReadError) }
    }

    /// What comes at or behind `at`, but for white space and a byte order mark, and where.
    fn next_token(&mut self, at: usize) -> Result<Option<(u8, usize)>, ArrayReadError> {
        let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let mut at = at;
        loop {
            if !self.in_array && at == 0 && self.bytes.starts_with("\u{feff}".as_bytes()) {
                at = 3;
            }
            match self.bytes[at..].iter().position(|byte| !is_blank(*byte)) {
                Some(blank) => return Ok(Some((self.bytes[at + blank], at + blank))),
                None if self.at_eof => return Ok(None),
                None => self.read_more()?,
            }
        }
    }

    /// Reads on: as much again as is kept of it.
    fn read_more(&mut self) -> Result<(), ArrayReadError> {
        let file = self.file.as_ref().filter(|_| !self.at_eof).ok_or(ArrayReadError)?;
        let wanted = CHUNK_BYTES.max(self.bytes.len() as u64);
        let read = file.take(wanted).read_to_end(&mut self.bytes)?;
        self.at_eof = (read as u64) < wanted;
        Ok(())
    }

    /// Lets go of what is looked through.
    fn drop_consumed(&mut self) {
        let past = self.element_end.saturating_sub(self.kept_before);
        self.bytes.drain(..past);
        (self.chunk_offset, self.element_end) = (self.chunk_offset + past as u64, self.element_end - past);
    }
}
