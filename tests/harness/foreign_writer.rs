//! Programs that are not ours on the same files, each with the lock that its kind takes, and what the dead among them
//! leave in a lock's place. For any trial that runs beside them: start, do something, ask what became of it.

use crate::{TestEnv, record_skip, sleep};
use serde_json::Value;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How a foreign program writes, and what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterKind {
    /// An inbox: waits for the lock, writes beside and renames. Claude Code from 2.1.158 on.
    RenameUnderLock,
    /// An inbox: gives up on a held lock, truncates and writes in place. Claude Code up to 2.1.139.
    SkipIfLocked,
    /// An inbox: waits for the lock, truncates, writes half, a moment later the rest.
    TruncateUnderLock,
    /// An inbox: as [`Manner::Renaming`], and holds the lock for seconds.
    HoldLock,
    /// A config.json: no lock, what it read a moment ago truncated over what is there. Claude Code up to 2.1.100.
    ConfigWithoutLock,
    /// The directory of a task list: flock on `.lock` alone.
    TasksWithFlock,
}

impl WriterKind {
    /// Program, script and how it is asked.
    fn command(self, target: &Path, prefix: &str, count: &str) -> Command {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign");
        let (program, script, mode) = match self {
            WriterKind::RenameUnderLock => ("node", "writer.js", Some("async")),
            WriterKind::SkipIfLocked => ("node", "writer.js", Some("sync")),
            WriterKind::TruncateUnderLock => ("node", "writer.js", Some("truncating")),
            WriterKind::HoldLock => ("node", "writer.js", Some("slow")),
            WriterKind::ConfigWithoutLock => ("node", "rewriter.js", None),
            WriterKind::TasksWithFlock => ("python3", "tasks.py", None),
        };
        let mut command = Command::new(program);
        command.arg(scripts.join(script)).args(mode).arg(target);
        command.args((self != WriterKind::ConfigWithoutLock).then_some(prefix)).arg(count);
        command
    }

    /// Why it can't be run here; none where it can.
    fn missing_dependency(self) -> Option<&'static str> {
        let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("foreign/node_modules");
        let answers = |program: &str| {
            let mut command = Command::new(program);
            command
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok_and(|ran| ran.success())
        };
        match self {
            WriterKind::TasksWithFlock => (!answers("python3")).then_some("python3 is not installed"),
            _ if !modules.is_dir() => Some("the node modules are not there: make test brings them"),
            _ => (!answers("node")).then_some("node is not installed"),
        }
    }
}

/// What one of them says of itself, in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriterReport {
    /// Texts of messages, numbers of rewrites, or tasks as `ID SUBJECT OWNER`.
    pub stored: Vec<String>,
    /// What it gave up, and knows it.
    pub refused: Vec<String>,
}

/// One that runs; dropped, it is killed.
#[derive(Debug)]
pub struct ForeignWriter(Option<Child>);

impl ForeignWriter {
    /// Starts one on `target`, for `count` writes, or until it is asked what became of them. None where this machine
    /// has not what it needs, which is said, and no excuse where `FOREIGN` is set.
    ///
    /// # Panics
    /// Where it can't be started, or is missing and needed.
    pub fn start(
        house: &TestEnv,
        manner: WriterKind,
        target: &Path,
        prefix: &str,
        count: Option<u64>,
    ) -> Option<ForeignWriter> {
        ForeignWriter::start_with_pause(house, manner, target, prefix, count, None)
    }

    /// The same, with up to so long between two writes; without a word a few milliseconds.
    ///
    /// # Panics
    /// As [`Foreign::start`].
    pub fn start_with_pause(
        house: &TestEnv,
        manner: WriterKind,
        target: &Path,
        prefix: &str,
        count: Option<u64>,
        pause: Option<Duration>,
    ) -> Option<ForeignWriter> {
        if let Some(why) = manner.missing_dependency() {
            assert!(std::env::var_os("FOREIGN").is_none(), "{why}");
            record_skip("foreign writers", why);
            return None;
        }
        let count = count.map_or("-".to_owned(), |count| count.to_string());
        let mut command = manner.command(target, prefix, &count);
        command.args(pause.map(|pause| pause.as_millis().to_string()));
        // Known to the house's audit; what else it finds in its environment is the machine's.
        command.env("HOUSE", house.path("")).stdin(Stdio::piped()).stdout(Stdio::piped());
        Some(ForeignWriter(Some(command.spawn().expect("it starts"))))
    }

    /// Tells it to stop, if it has no number of its own, and waits until it has said what became of its writes.
    ///
    /// # Panics
    /// Where it failed otherwise than by being refused.
    pub fn finish(mut self) -> WriterReport {
        let mut child = self.0.take().expect("it is asked once");
        drop(child.stdin.take());
        let ran = child.wait_with_output().expect("it is ours");
        assert!(ran.status.success(), "{:?}", ran.status);
        let mut said: Value = serde_json::from_slice(&ran.stdout).expect("it says what it did");
        let [stored, refused] = ["stored", "refused"]
            .map(|key| serde_json::from_value(said[key].take()).expect("it is a list of texts"));
        WriterReport { stored, refused }
    }
}

impl Drop for ForeignWriter {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// What the dead leave in a lock's place, or somebody puts there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleLockKind {
    /// An empty directory, long not touched: taken over by whoever comes.
    OldDirectory,
    /// An empty directory with a time stamp to come.
    FutureTime,
    /// A file.
    File,
    /// A directory with something in it.
    NonEmptyDirectory,
    /// A link to nowhere.
    Link,
}

impl StaleLockKind {
    /// Every kind.
    pub const ALL: [StaleLockKind; 5] = [
        StaleLockKind::OldDirectory,
        StaleLockKind::File,
        StaleLockKind::NonEmptyDirectory,
        StaleLockKind::Link,
        StaleLockKind::FutureTime,
    ];

    /// Puts it where the lock of `target` goes. None where one is held.
    ///
    /// # Panics
    /// Where it can't be made for another reason.
    pub fn plant(self, target: &Path) -> Option<PlantedLock> {
        let path = PathBuf::from(format!("{}.lock", target.display()));
        let made = match self {
            StaleLockKind::OldDirectory | StaleLockKind::FutureTime | StaleLockKind::NonEmptyDirectory => {
                std::fs::DirBuilder::new().mode(0o700).create(&path)
            }
            StaleLockKind::File => File::create_new(&path).map(drop),
            StaleLockKind::Link => symlink("nowhere", &path),
        };
        match made {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return None,
            made => made.expect("it can be made"),
        }
        if self == StaleLockKind::NonEmptyDirectory {
            File::create_new(path.join("inside")).expect("it can be made");
        }
        let hour = Duration::from_secs(3600);
        let time = if self == StaleLockKind::FutureTime {
            SystemTime::now() + hour
        } else {
            SystemTime::now() - hour
        };
        // By what is open: a dead one may be taken over at once.
        let found = match self {
            StaleLockKind::Link => path.symlink_metadata(),
            _ => File::open(&path).and_then(|file| file.set_modified(time).and(file.metadata())),
        };
        let stamp = PlantedLockStamp::from_metadata(&found.expect("it is ours"));
        Some(PlantedLock { kind: self, path, stamp })
    }
}

/// Which one it is: another in its place has another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlantedLockStamp(u64, Option<Duration>);

impl PlantedLockStamp {
    fn from_metadata(metadata: &Metadata) -> PlantedLockStamp {
        let modified = metadata.modified().ok();
        PlantedLockStamp(metadata.ino(), modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()))
    }
}

/// One that was put in a lock's place.
#[derive(Debug)]
pub struct PlantedLock {
    kind: StaleLockKind,
    path: PathBuf,
    stamp: PlantedLockStamp,
}

impl PlantedLock {
    /// Takes it away, if it still is there. False where somebody else did who never should have: what is no empty
    /// directory is no lock.
    pub fn remove(self) -> bool {
        let found = self.path.symlink_metadata().ok();
        if found.is_none_or(|found| PlantedLockStamp::from_metadata(&found) != self.stamp) {
            return matches!(self.kind, StaleLockKind::OldDirectory | StaleLockKind::FutureTime);
        }
        let taken = match self.kind {
            StaleLockKind::File | StaleLockKind::Link => std::fs::remove_file(&self.path),
            StaleLockKind::NonEmptyDirectory => {
                std::fs::remove_file(self.path.join("inside")).and(std::fs::remove_dir(&self.path))
            }
            StaleLockKind::OldDirectory | StaleLockKind::FutureTime => std::fs::remove_dir(&self.path),
        };
        // Of an abandoned one somebody may be faster.
        taken.is_ok() || matches!(self.kind, StaleLockKind::OldDirectory | StaleLockKind::FutureTime)
    }
}

/// Puts one after the other in the locks' places of some files, a kind after the other, and takes each away after a
/// moment, but for the dead ones: somebody else is to take these over, until another is to stand there.
#[derive(Debug)]
pub struct LockPlanter {
    stop: Sender<()>,
    thread: JoinHandle<Vec<(StaleLockKind, bool)>>,
}

impl LockPlanter {
    /// Begins, with a pause between two; at least one of these files is there.
    pub fn start(targets: Vec<PathBuf>, between: Duration) -> LockPlanter {
        let (stop, stopped) = channel();
        LockPlanter {
            stop,
            thread: std::thread::spawn(move || plant_one_by_one(&targets, between, &stopped)),
        }
    }

    /// Stops when each kind has had its turn, and tells what was planted, with whether it was treated as it must be.
    ///
    /// # Panics
    /// Where something could not be planted.
    pub fn stop(self) -> Vec<(StaleLockKind, bool)> {
        drop(self.stop);
        self.thread.join().expect("it can plant")
    }
}

fn plant_one_by_one(
    targets: &[PathBuf],
    between: Duration,
    stopped: &Receiver<()>,
) -> Vec<(StaleLockKind, bool)> {
    let (mut told, mut dead): (_, Vec<(&PathBuf, PlantedLock)>) = (Vec::new(), Vec::new());
    for (nth, (kind, target)) in
        StaleLockKind::ALL.into_iter().cycle().zip(targets.iter().cycle()).enumerate()
    {
        let old = dead.extract_if(.., |(of, _)| *of == target);
        told.extend(old.map(|(_, planted)| (StaleLockKind::OldDirectory, planted.remove())));
        let Some(planted) = plant_one(kind, target) else { continue };
        sleep(Duration::from_millis(200));
        match kind {
            StaleLockKind::OldDirectory => dead.push((target, planted)),
            _ => told.push((kind, planted.remove())),
        }
        let is_over = stopped.recv_timeout(between) != Err(RecvTimeoutError::Timeout);
        if is_over && nth + 1 >= StaleLockKind::ALL.len() {
            break;
        }
    }
    told.extend(dead.into_iter().map(|(_, planted)| (StaleLockKind::OldDirectory, planted.remove())));
    told
}

/// Whoever holds the lock lets it go in a moment. None where it is of one who was killed with it, and nobody comes who would
/// take it over.
fn plant_one(kind: StaleLockKind, target: &Path) -> Option<PlantedLock> {
    let until = Instant::now() + Duration::from_secs(15);
    loop {
        match kind.plant(target) {
            None if Instant::now() < until => sleep(Duration::from_millis(1)),
            planted => return planted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_lock_is_recognized() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x.json");
        let lock = directory.path().join("x.json.lock");
        for kind in StaleLockKind::ALL {
            let planted = kind.plant(&target).unwrap();
            assert!(kind.plant(&target).is_none(), "one is there");
            assert!(planted.remove() && lock.symlink_metadata().is_err(), "{kind:?}");
        }
        let planted = StaleLockKind::File.plant(&target).unwrap();
        std::fs::remove_file(&lock).unwrap();
        std::fs::create_dir(&lock).unwrap();
        assert!(!planted.remove() && lock.is_dir(), "another's stays, and ours was never to go");
        std::fs::remove_dir(&lock).unwrap();
        let planted = StaleLockKind::OldDirectory.plant(&target).unwrap();
        std::fs::remove_dir(&lock).unwrap();
        assert!(planted.remove(), "whoever came has taken it over");
    }
}
