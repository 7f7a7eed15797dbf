//! Reads a log that is rotated: a file `LOG` that has reached its maximum size is renamed to
//! `LOG.1`, and a new `LOG` is started.

use client::growing_file_reader::GrowingFileReader;
use protocol::error_kind_and_report::ErrorReport;
use std::path::{Path, PathBuf};

/// A log and its previous file, which is read first.
pub(super) struct RotatedLog {
    /// `None` after the previous file was read to its end.
    previous: Option<GrowingFileReader>,
    current: GrowingFileReader,
}

impl RotatedLog {
    /// Opens the log at `path`. It may be created later.
    pub(super) fn open(path: &Path) -> RotatedLog {
        // `LOG` is opened before `LOG.1`, so that no output is missed if the log is rotated between
        // the two calls. In this case both readers have opened the same file, and the second one is
        // dropped.
        let current = GrowingFileReader::new(path.to_owned());
        let previous = GrowingFileReader::new(previous_path(path));
        RotatedLog { previous: Some(previous).filter(|previous| !previous.is_same_file(&current)), current }
    }

    /// Reads the next bytes. `None` if there are currently no more.
    pub(super) fn next_chunk(&mut self) -> Result<Option<Vec<u8>>, ErrorReport> {
        if let Some(previous) = &mut self.previous {
            let chunk = previous.next_chunk_of_open_file()?;
            if chunk.is_some() {
                return Ok(chunk);
            }
            self.previous = None;
        }
        self.current.next_chunk()
    }
}

fn previous_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test rotates its own log")]
    fn each_part_is_read_once_across_rotations() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ann.log");
        let read_all = |log: &mut RotatedLog| {
            let chunks = std::iter::from_fn(|| log.next_chunk().unwrap());
            String::from_utf8(chunks.flatten().collect()).unwrap()
        };
        std::fs::write(previous_path(&path), "one ").unwrap();
        std::fs::write(&path, "two ").unwrap();
        let mut log = RotatedLog::open(&path);
        assert_eq!(read_all(&mut log), "one two ");
        std::fs::rename(&path, previous_path(&path)).unwrap();
        std::fs::write(&path, "three ").unwrap();
        assert_eq!(read_all(&mut log), "three ");
        std::fs::rename(&path, previous_path(&path)).unwrap();
        assert_eq!(read_all(&mut log), "");
        std::fs::write(&path, "four").unwrap();
        assert_eq!(read_all(&mut log), "four");
    }
}
