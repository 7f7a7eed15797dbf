//! The log goes to a file, never to the terminal: a daemon whose pane was closed must not die of its log. Each
//! start has a file of its own, and another whenever that is full; `latest` leads to the newest, and the oldest go. A
//! file that the arguments name is its owner's to keep small.

use crate::args::{Args, LogFormat};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::timestamp::iso8601;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::Subscriber;

/// So many files are kept.
const MAX_FILES: usize = 10;
/// Beyond this a file is full, bytes.
const MAX_BYTES: u64 = 10 << 20;

/// Starts logging, into the state directory or where the arguments say.
pub(crate) fn start(args: &Args, state: &Path) -> Result<(), ErrorReport> {
    let log = match &args.log_file {
        Some(path) => LogFile { file: open(path)?, written: 0, directory: None },
        None => LogFile::create(state.join("logs").join("teamd"))?,
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

/// The file of now.
struct LogFile {
    file: File,
    written: u64,
    /// Where the next one goes; none: there is none.
    directory: Option<PathBuf>,
}

impl LogFile {
    fn create(directory: PathBuf) -> Result<LogFile, ErrorReport> {
        Ok(LogFile { file: open(&new_log_path(&directory)?)?, written: 0, directory: Some(directory) })
    }

    /// Where no other can be begun, this one goes on for as long again.
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

/// It tells who does what: for its owner alone.
fn open(path: &Path) -> Result<File, ErrorReport> {
    let file = File::options().create(true).append(true).mode(0o600).open(path);
    file.map_err(|error| ErrorReport::from_io("open", path, &error))
}

/// The file of this start. A link that can't be set, or an old file that can't go, keeps nobody from starting.
fn new_log_path(directory: &Path) -> Result<PathBuf, ErrorReport> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| ErrorReport::from_io("make", directory, &error))?;
    let name = format!("{}.log", iso8601(store::now()).replace(':', "-"));
    let latest = directory.join("latest");
    std::fs::remove_file(&latest).ok();
    symlink(&name, &latest).ok();
    files_to_remove(directory).into_iter().for_each(|path| std::fs::remove_file(path).unwrap_or_default());
    Ok(directory.join(name))
}

/// Those beyond the newest; their names are times.
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
    fn a_file_that_was_named_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.log");
        open(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_file_is_followed_by_another_and_all_of_them_are_bounded() {
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
    fn where_no_other_can_be_begun_a_full_file_goes_on() {
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
    fn the_latest_start_has_a_link_and_the_oldest_go() {
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
