//! Writes an agent's output to a log of limited size. When the log reaches 10 MiB, it is renamed to
//! `NAME.1`, and a new log is started.
//!
//! tmux pipes the output of a pane into `teamd-shim log PATH`. Without a pane the shim writes the
//! log itself. If the disk is full, output is lost, because an agent must never wait for its log.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use store::StateDir;

/// The largest size of a log file, in bytes. An agent has at most two of these files.
const MAX_LOG_BYTES: u64 = 10 << 20;

/// An open log.
#[derive(Debug)]
pub(crate) struct OutputLogWriter {
    dir: StateDir,
    name: String,
}

impl OutputLogWriter {
    /// Prepares to write the log at `path`, and creates its directory if needed. The file itself is
    /// created with the first bytes.
    pub(crate) fn open(path: &Path) -> Result<OutputLogWriter, ErrorReport> {
        let parts = path.parent().zip(path.file_name().and_then(|name| name.to_str()));
        let (dir, name) = parts.ok_or_else(|| {
            ErrorReport::new(
                ErrorKind::Usage,
                format!("cannot record to {}: it names no file", path.display()),
            )
        })?;
        Ok(OutputLogWriter { dir: StateDir::open(dir)?, name: name.to_owned() })
    }

    /// Appends bytes to the log. If the disk is full, the bytes are lost.
    pub(crate) fn append(&self, bytes: &[u8]) {
        self.dir.append(&self.name, bytes, MAX_LOG_BYTES).ok();
    }
}

/// Writes everything from standard input to the log at `path`, until standard input ends.
pub(crate) fn run(path: &Path) -> Result<ExitCode, ErrorReport> {
    let log = OutputLogWriter::open(path)?;
    let mut bytes = vec![0; 64 << 10];
    loop {
        match std::io::stdin().read(&mut bytes) {
            Ok(0) => return Ok(ExitCode::SUCCESS),
            Ok(count) => log.append(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(ErrorReport::new(ErrorKind::Io, format!("cannot read standard input: {error}")));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_log_is_renamed_and_at_most_two_files_exist() {
        let dir = tempfile::tempdir().unwrap();
        let log_dir = dir.path().join("logs");
        let log = OutputLogWriter::open(&log_dir.join("ann.log")).unwrap();
        let block = vec![b'x'; 4 << 20];
        (0..7).for_each(|_| log.append(&block));
        let size = |name: &str| log_dir.join(name).metadata().unwrap().len();
        assert_eq!((size("ann.log"), size("ann.log.1")), (4 << 20, 8 << 20));
        assert_eq!(std::fs::read_dir(&log_dir).unwrap().count(), 2);
    }

    #[test]
    fn path_without_a_file_name_is_refused() {
        assert_eq!(OutputLogWriter::open(Path::new("/")).unwrap_err().kind, ErrorKind::Usage);
    }
}
