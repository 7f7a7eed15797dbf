//! The daemon's log files, in `logs/teamd` of the state directory.
//!
//! Each start of the daemon begins a new log file. When a file is full, the daemon continues in a
//! new one. The link `latest` points to the newest file; the oldest files are removed. A log file
//! that is given with `--log-file` has no size limit. The log is never written to the terminal,
//! because the terminal may be closed.

use crate::args::{Args, LogFormat};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::state_file_names::LOGS_DIR;
use protocol::timestamp::iso8601;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::Subscriber;

/// How many log files are kept.
const MAX_FILES: usize = 10;
/// A log file of this size, in bytes, is full.
const MAX_BYTES: u64 = 10 << 20;

/// Starts logging to the file of `--log-file`, or else to a new file in the state directory.
pub(crate) fn start(args: &Args, state: &Path) -> Result<(), ErrorReport> {
    let log = match &args.log_file {
        Some(path) => LogFile { file: open(path)?, written: 0, directory: None },
        None => LogFile::create(state.join(LOGS_DIR).join("teamd"))?,
    };
    set_subscriber(args, log)
}

fn set_subscriber(args: &Args, file: LogFile) -> Result<(), ErrorReport> {
    let level = if args.verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    let log = Subscriber::builder().with_max_level(level).with_ansi(false).log_internal_errors(false);
    let set = match args.log_format {
        LogFormat::Text => {
            tracing::subscriber::set_global_default(log.with_writer(Mutex::new(file)).finish())
        }
        LogFormat::Json => {
            tracing::subscriber::set_global_default(log.json().with_writer(Mutex::new(file)).finish())
        }
    };
    set.map_err(|error| ErrorReport::new(ErrorKind::Internal, format!("cannot start the log: {error}")))
}

/// The current log file.
struct LogFile {
    file: File,
    /// How many bytes the daemon has written to this file. If the file is full and the next file
    /// cannot be created, the daemon goes on with this file and counts from 0 again.
    written: u64,
    /// The directory of the next file. `None` if the file is never rotated.
    directory: Option<PathBuf>,
}

impl LogFile {
    /// Creates the next log file in `directory`.
    fn create(directory: PathBuf) -> Result<LogFile, ErrorReport> {
        Ok(LogFile { file: open(&new_log_path(&directory)?)?, written: 0, directory: Some(directory) })
    }

    /// Switches to a new file. If that fails, the current file gets up to [`MAX_BYTES`] more.
    fn rotate(&mut self) {
        let next = self.directory.take().map(|directory| (LogFile::create(directory.clone()), directory));
        match next {
            Some((Ok(next), _)) => *self = next,
            Some((Err(_), directory)) => (self.written, self.directory) = (0, Some(directory)),
            None => {}
        }
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        if self.written >= MAX_BYTES {
            self.rotate();
        }
        let written = self.file.write(line)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

/// Opens a log file to append to it. A new file has mode 0600, because a log can hold private data.
fn open(path: &Path) -> Result<File, ErrorReport> {
    let file = File::options().create(true).append(true).mode(0o600).open(path);
    file.map_err(|error| ErrorReport::from_io("open", path, &error))
}

/// Returns the path of a new log file, which is named by the current time. Points the link `latest`
/// to the new file and removes the oldest files.
///
/// # Errors
///
/// If the directory cannot be created. Errors of the link and of the removals are ignored.
fn new_log_path(directory: &Path) -> Result<PathBuf, ErrorReport> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    created.map_err(|error| ErrorReport::from_io("make", directory, &error))?;
    let name = format!("{}.log", iso8601(store::now()).replace(':', "-"));
    let latest = directory.join("latest");
    std::fs::remove_file(&latest).ok();
    symlink(&name, &latest).ok();
    files_to_remove(directory).into_iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
    Ok(directory.join(name))
}

/// The log files in `directory` to remove: all but the newest `MAX_FILES - 1`. A file name begins
/// with a time, so sorting by name sorts by age.
fn files_to_remove(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut logs: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "log")).collect();
    logs.sort();
    logs.truncate(logs.len().saturating_sub(MAX_FILES - 1));
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_file_is_readable_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.log");
        open(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_file_is_rotated_and_size_and_number_of_files_are_bounded() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("teamd");
        let mut log = LogFile::create(directory.clone()).unwrap();
        let line = vec![b'x'; 1 << 20];
        for _ in 0..150 {
            log.write_all(&line).unwrap();
        }
        let files =
            || std::fs::read_dir(&directory).unwrap().flatten().map(|entry| entry.metadata().unwrap());
        let files: Vec<u64> = files().filter(std::fs::Metadata::is_file).map(|meta| meta.len()).collect();
        assert!(files.len() > 1 && files.len() <= MAX_FILES, "{files:?}");
        assert!(files.iter().all(|length| *length <= MAX_BYTES + line.len() as u64), "{files:?}");
    }

    #[test]
    fn a_full_file_that_cannot_be_rotated_is_still_written() {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join("teamd");
        let mut log = LogFile::create(directory.clone()).unwrap();
        std::fs::remove_file(directory.join("latest")).unwrap();
        for entry in std::fs::read_dir(&directory).unwrap() {
            std::fs::remove_file(entry.unwrap().path()).unwrap();
        }
        std::fs::remove_dir(&directory).unwrap();
        File::create(&directory).unwrap();
        log.written = MAX_BYTES;
        log.write_all(b"still here").unwrap();
        assert_eq!((log.written, log.directory), (10, Some(directory)));
    }

    #[test]
    fn the_latest_file_has_a_link_and_the_oldest_files_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        for n in 10..30 {
            File::create(directory.path().join(format!("20{n}.log"))).unwrap();
        }
        let path = new_log_path(directory.path()).unwrap();
        assert_eq!(directory.path().join(std::fs::read_link(directory.path().join("latest")).unwrap()), path);
        assert_eq!(files_to_remove(directory.path()).len(), 0);
        assert!(directory.path().join("2029.log").exists() && !directory.path().join("2020.log").exists());
    }
}
