//! A file that grows, read as far as it goes, and on from there next time. Where another file takes its
//! place (a log that was rotated) the old one is read to its end first; where it was cut, from its start.

use protocol::error::ErrorReport;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// At most this much at once, in bytes.
const CHUNK_BYTES: u64 = 64 << 10;

/// A growing file and how far it was read.
#[derive(Debug)]
pub struct FileTail {
    path: PathBuf,
    file: Option<File>,
}

impl FileTail {
    /// From the start of the file that is at `path` now, or comes there later.
    pub fn new(path: PathBuf) -> FileTail {
        // Why it can't be opened is told by the first read, which tries again.
        FileTail { file: File::open(&path).ok(), path }
    }

    /// Whether both read the same file, whatever it is called.
    pub fn is_same_file(&self, other: &FileTail) -> bool {
        let found = |tail: &FileTail| Some(file_id(&tail.file.as_ref()?.metadata().ok()?));
        found(self).is_some_and(|file| Some(file) == found(other))
    }

    /// The next bytes; none for now at the end.
    pub fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ErrorReport> {
        loop {
            let chunk =
                self.read_chunk().map_err(|error| ErrorReport::from_io("read", &self.path, &error))?;
            if !chunk.is_empty() {
                return Ok(Some(chunk));
            }
            if !self.reopen_if_replaced().map_err(|error| ErrorReport::from_io("open", &self.path, &error))? {
                return Ok(None);
            }
        }
    }

    /// The next bytes of the file that was there at first, whatever has taken its place since.
    pub fn next_chunk_of_open_file(&mut self) -> Result<Option<Vec<u8>>, ErrorReport> {
        let chunk = self.read_chunk().map_err(|error| ErrorReport::from_io("read", &self.path, &error))?;
        Ok(Some(chunk).filter(|chunk| !chunk.is_empty()))
    }

    fn read_chunk(&mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            file.take(CHUNK_BYTES).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// At the end of what is open: goes to another file of that name, or back to the start of a cut one.
    fn reopen_if_replaced(&mut self) -> std::io::Result<bool> {
        let there = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let Some(open) = &mut self.file else {
            self.file = Some(there);
            return Ok(true);
        };
        let (before, now) = (open.metadata()?, there.metadata()?);
        if file_id(&before) != file_id(&now) {
            self.file = Some(there);
            return Ok(true);
        }
        let cut = now.len() < open.stream_position()?;
        if cut {
            open.rewind()?;
        }
        Ok(cut)
    }
}

fn file_id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test rotates a log of its own")]
    fn chunks_continue_after_growth_rotation_and_truncation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut tail = FileTail::new(path.clone());
        assert_eq!(tail.next_chunk().unwrap(), None);
        let mut log = File::create(&path).unwrap();
        log.write_all(b"one").unwrap();
        assert_eq!(tail.next_chunk().unwrap().unwrap(), b"one");
        assert_eq!(tail.next_chunk().unwrap(), None);
        log.write_all(b"two").unwrap();
        std::fs::rename(&path, dir.path().join("log.1")).unwrap();
        File::create(&path).unwrap().write_all(b"three").unwrap();
        assert_eq!(tail.next_chunk().unwrap().unwrap(), b"two");
        assert_eq!(tail.next_chunk().unwrap().unwrap(), b"three");
        File::create(&path).unwrap().write_all(b"4").unwrap();
        assert_eq!(tail.next_chunk().unwrap().unwrap(), b"4");
        assert_eq!(tail.next_chunk().unwrap(), None);
    }
}
