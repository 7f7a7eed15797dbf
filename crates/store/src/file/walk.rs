//! A long array, looked through a part at a time: what of it is in memory is one part, however long it is.
//!
//! What is no array, or changes while it is looked through, is for [`read_as`](super::read_as) to wait for and to tell.

use super::snapshot::{Identity, Snapshot, opened};
use crate::directory::Directory;
use crate::error::Error;
use nix::sys::stat::fstat;
use protocol::json;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::SystemTime;

/// The bytes of a part, unless an element is longer.
const PART: u64 = 256 << 10;

/// A place in an array.
#[derive(Debug)]
pub(crate) struct Walk {
    /// None where the part is all there is.
    file: Option<File>,
    size: u64,
    /// The file when it was opened; and by what it is known to be unchanged.
    identity: Option<Identity>,
    settled: Option<Identity>,
    /// The part: bytes of the file from `start` on.
    bytes: Vec<u8>,
    start: u64,
    /// So many of them end with the last element that was looked at, or are before the first.
    end: usize,
    /// So many before that are kept.
    shown: usize,
    /// There is nothing in the file behind the part.
    is_last: bool,
    began: bool,
}

/// It is no array, or another one by now, or can't be read.
#[derive(Debug)]
pub(crate) struct Odd;

impl From<std::io::Error> for Odd {
    fn from(_: std::io::Error) -> Odd {
        Odd
    }
}

impl Walk {
    /// At the start of `name`; none if there is no such file. The `shown` bytes before a place are kept.
    pub(crate) fn start(dir: &Directory, name: &str, shown: usize) -> Result<Option<Walk>, Error> {
        let opening = SystemTime::now();
        let Some((file, stat)) = opened(dir, name)? else { return Ok(None) };
        let identity = Identity::of(&stat);
        let settled = (!identity.is_fresh(opening)).then_some(identity);
        let (bytes, size) = (Vec::new(), identity.size());
        let (file, identity) = (Some(file), Some(identity));
        Ok(Some(Walk {
            file,
            size,
            identity,
            settled,
            bytes,
            start: 0,
            end: 0,
            shown,
            is_last: false,
            began: false,
        }))
    }

    /// At the start of what was read whole.
    pub(crate) fn of(snapshot: Snapshot, shown: usize) -> Walk {
        let (settled, bytes) = (snapshot.settled(), snapshot.into_bytes());
        let size = bytes.len() as u64;
        let (file, identity) = (None, None);
        Walk { file, size, identity, settled, bytes, start: 0, end: 0, shown, is_last: true, began: false }
    }

    /// Goes back to the start.
    pub(crate) fn rewind(&mut self) -> Result<(), Odd> {
        if let Some(file) = &mut self.file {
            file.rewind()?;
            self.bytes.clear();
            (self.start, self.is_last) = (0, false);
        }
        (self.end, self.began) = (0, false);
        Ok(())
    }

    /// Goes to behind an element that ends at `end` bytes; what stands before it is for the caller to know it by.
    pub(crate) fn skip_to(&mut self, end: u64) -> Result<(), Odd> {
        self.start = end.saturating_sub(self.shown as u64);
        self.file.as_mut().ok_or(Odd)?.seek(SeekFrom::Start(self.start))?;
        self.end = (end - self.start) as usize;
        while self.bytes.len() < self.end {
            self.more()?;
        }
        self.began = true;
        Ok(())
    }

    /// Bytes of the file when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Where the last element that was looked at ends, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.end as u64
    }

    /// The bytes before that, as many as are to be shown, or as there are.
    pub(crate) fn before(&self) -> &[u8] {
        &self.bytes[self.end.saturating_sub(self.shown)..self.end]
    }

    /// By what the file is known to be unchanged; none where that can't be told, or another one is at its place by now.
    ///
    /// # Errors
    /// Where it has changed since it was opened.
    pub(crate) fn settled(&self) -> Result<Option<Identity>, Odd> {
        let (Some(file), Some(before)) = (&self.file, &self.identity) else { return Ok(self.settled) };
        let now = Identity::of(&fstat(file).map_err(|_| Odd)?);
        if !now.is_renamed(before) {
            return Err(Odd);
        }
        Ok(self.settled.filter(|before| *before == now))
    }

    /// The next element, as it is spelled; none at the end of the array.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, Odd> {
        if self.file.is_some() && self.end as u64 > PART {
            self.let_go();
        }
        let Some(from) = self.next_begins()? else { return Ok(None) };
        let length = loop {
            match json::parse_first(&self.bytes[from..]) {
                // A number that ends where the part does may go on.
                Ok(Some((value, end))) if self.is_last || from + end < self.bytes.len() => {
                    self.end = from + end;
                    break value.get().len();
                }
                // So may one that is none yet: `1.` for example.
                _ => self.more()?,
            }
        };
        let text = std::str::from_utf8(&self.bytes[self.end - length..self.end]);
        text.map(Some).map_err(|_| Odd)
    }

    /// Where the next element begins, or the white space before it.
    fn next_begins(&mut self) -> Result<Option<usize>, Odd> {
        let (sign, at) = self.sign(self.end)?.ok_or(Odd)?;
        match (sign, std::mem::replace(&mut self.began, true)) {
            (b',', true) => Ok(Some(at + 1)),
            (b']', true) => self.ends(at + 1),
            (b'[', false) => match self.sign(at + 1)? {
                Some((b']', end)) => self.ends(end + 1),
                Some(_) => Ok(Some(at + 1)),
                None => Err(Odd),
            },
            _ => Err(Odd),
        }
    }

    /// Nothing may stand there any more. The end stays where the last element has it.
    fn ends(&mut self, at: usize) -> Result<Option<usize>, Odd> {
        if self.sign(at)?.is_none() { Ok(None) } else { Err(Odd) }
    }

    /// What comes at or behind `at`, but for white space and a byte order mark, and where.
    fn sign(&mut self, at: usize) -> Result<Option<(u8, usize)>, Odd> {
        let is_blank = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let mut at = at;
        loop {
            if !self.began && at == 0 && self.bytes.starts_with("\u{feff}".as_bytes()) {
                at = 3;
            }
            match self.bytes[at..].iter().position(|byte| !is_blank(*byte)) {
                Some(blank) => return Ok(Some((self.bytes[at + blank], at + blank))),
                None if self.is_last => return Ok(None),
                None => self.more()?,
            }
        }
    }

    /// Reads on: as much again as is kept of it.
    fn more(&mut self) -> Result<(), Odd> {
        let file = self.file.as_ref().filter(|_| !self.is_last).ok_or(Odd)?;
        let wanted = PART.max(self.bytes.len() as u64);
        let read = file.take(wanted).read_to_end(&mut self.bytes)?;
        self.is_last = (read as u64) < wanted;
        Ok(())
    }

    /// Lets go of what is looked through.
    fn let_go(&mut self) {
        let past = self.end.saturating_sub(self.shown);
        self.bytes.drain(..past);
        (self.start, self.end) = (self.start + past as u64, self.end - past);
    }
}
