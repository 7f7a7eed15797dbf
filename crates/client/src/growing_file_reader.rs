//! Reads a growing file, such as a log, in chunks.
//!
//! If the file is replaced (log rotation), the old file is read to its end first. If the file is
//! truncated, reading continues at its start.

use protocol::error_kind_and_report::ErrorReport;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Maximum size of a chunk, in bytes.
const CHUNK_BYTES: u64 = 64 << 10;

/// A growing file and the position of the next read.
#[derive(Debug)]
pub struct GrowingFileReader {
    path: PathBuf,
    file: Option<File>,
}

impl GrowingFileReader {
    /// Opens the file at `path` and starts to read at its beginning. If the file does not exist
    /// yet, it is opened when it is created.
    pub fn new(path: PathBuf) -> GrowingFileReader {
        // An error is not reported here: the first read opens the file again and reports it.
        GrowingFileReader { file: File::open(&path).ok(), path }
    }

    /// Whether both readers read the same file, even under different names.
    pub fn is_same_file(&self, other: &GrowingFileReader) -> bool {
        let id = |tail: &GrowingFileReader| Some(file_id(&tail.file.as_ref()?.metadata().ok()?));
        id(self).is_some_and(|file| Some(file) == id(other))
    }

    /// Reads the next bytes of the file. `None` if there are currently no more bytes.
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

    /// Reads the next bytes of the open file, even if another file has replaced it. `None` if there
    /// are currently no more bytes.
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

    /// Called at the end of the open file. If another file has replaced the open file, opens the
    /// new file. If the open file was truncated, continues at its start. Returns whether there may
    /// be more to read.
    fn reopen_if_replaced(&mut self) -> std::io::Result<bool> {
        let current = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let Some(open_file) = &mut self.file else {
            self.file = Some(current);
            return Ok(true);
        };
        let (open_metadata, current_metadata) = (open_file.metadata()?, current.metadata()?);
        if file_id(&open_metadata) != file_id(&current_metadata) {
            self.file = Some(current);
            return Ok(true);
        }
        let is_truncated = current_metadata.len() < open_file.stream_position()?;
        if is_truncated {
            open_file.rewind()?;
        }
        Ok(is_truncated)
    }
}

fn file_id(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test rotates its own log")]
    fn chunks_continue_after_growth_rotation_and_truncation() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut tail = GrowingFileReader::new(path.clone());
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
