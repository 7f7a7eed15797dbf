//! Plants stale locks, and files that are not locks, at the lock paths of a test's files. Reports
//! whether the programs under test handled each one correctly: they may remove a stale lock, but
//! nothing else.

use crate::sleep;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What is planted at a lock path: a lock that a killed process left, or something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StaleLockKind {
    /// An empty directory with an old timestamp. The next program takes the lock over.
    OldDirectory,
    /// An empty directory with a timestamp in the future.
    FutureTime,
    /// A regular file, which is not a lock.
    File,
    /// A directory that contains a file, which is not a lock.
    NonEmptyDirectory,
    /// A dangling symbolic link, which is not a lock.
    Link,
}

impl StaleLockKind {
    /// Every kind, in the order in which [`LockPlanter`] plants them.
    pub const ALL: [StaleLockKind; 5] = [
        StaleLockKind::OldDirectory,
        StaleLockKind::File,
        StaleLockKind::NonEmptyDirectory,
        StaleLockKind::Link,
        StaleLockKind::FutureTime,
    ];

    /// Creates this kind of stale lock at the lock path of `target`. `None` if the path exists.
    ///
    /// # Panics
    /// If it can't be created for another reason.
    pub fn plant(self, target: &Path) -> Option<PlantedLock> {
        let path = PathBuf::from(format!("{}.lock", target.display()));
        let result = match self {
            StaleLockKind::OldDirectory | StaleLockKind::FutureTime | StaleLockKind::NonEmptyDirectory => {
                std::fs::DirBuilder::new().mode(0o700).create(&path)
            }
            StaleLockKind::File => File::create_new(&path).map(drop),
            StaleLockKind::Link => symlink("nowhere", &path),
        };
        match result {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return None,
            result => result.expect("the stale lock can be created"),
        }
        if self == StaleLockKind::NonEmptyDirectory {
            File::create_new(path.join("inside")).expect("the file in the directory can be created");
        }
        let hour = Duration::from_secs(3600);
        let time = if self == StaleLockKind::FutureTime {
            SystemTime::now() + hour
        } else {
            SystemTime::now() - hour
        };
        // Uses the open file, because another process may take over an old lock at any moment.
        let metadata = match self {
            StaleLockKind::Link => path.symlink_metadata(),
            _ => File::open(&path).and_then(|file| file.set_modified(time).and(file.metadata())),
        };
        let stamp = PlantedLockStamp::from_metadata(&metadata.expect("the timestamp can be set"));
        Some(PlantedLock { kind: self, path, stamp })
    }
}

/// Identifies a planted lock: its inode number and its timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PlantedLockStamp(u64, Option<Duration>);

impl PlantedLockStamp {
    fn from_metadata(metadata: &Metadata) -> PlantedLockStamp {
        let modified = metadata.modified().ok();
        PlantedLockStamp(metadata.ino(), modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok()))
    }
}

/// A stale lock that was planted.
#[derive(Debug)]
pub struct PlantedLock {
    kind: StaleLockKind,
    path: PathBuf,
    stamp: PlantedLockStamp,
}

impl PlantedLock {
    /// Removes the planted lock if it is still there. Returns false if another process removed it
    /// wrongly: only an empty directory is a lock that may be taken over.
    pub fn remove(self) -> bool {
        let metadata = self.path.symlink_metadata().ok();
        if metadata.is_none_or(|metadata| PlantedLockStamp::from_metadata(&metadata) != self.stamp) {
            return matches!(self.kind, StaleLockKind::OldDirectory | StaleLockKind::FutureTime);
        }
        let removed = match self.kind {
            StaleLockKind::File | StaleLockKind::Link => std::fs::remove_file(&self.path),
            StaleLockKind::NonEmptyDirectory => {
                std::fs::remove_file(self.path.join("inside")).and(std::fs::remove_dir(&self.path))
            }
            StaleLockKind::OldDirectory | StaleLockKind::FutureTime => std::fs::remove_dir(&self.path),
        };
        // Another process may have taken the lock over since the check above.
        removed.is_ok() || matches!(self.kind, StaleLockKind::OldDirectory | StaleLockKind::FutureTime)
    }
}

/// The kind of a planted lock, and whether it was handled correctly.
type PlantResult = (StaleLockKind, bool);

/// Plants stale locks at the lock paths of some files, one at a time and one kind after the other,
/// in a thread. Removes each after 200 ms, except those of the kind `OldDirectory`: they stay until
/// another process takes them over, or until the next stale lock is planted at the same path.
#[derive(Debug)]
pub struct LockPlanter {
    stop: Sender<()>,
    thread: JoinHandle<Vec<PlantResult>>,
}

impl LockPlanter {
    /// Starts to plant stale locks, with the pause `interval` between two. `targets` are the files
    /// whose locks are planted, at least one.
    pub fn start(targets: Vec<PathBuf>, interval: Duration) -> LockPlanter {
        let (stop, stopped) = channel();
        LockPlanter { stop, thread: std::thread::spawn(move || plant_in_turn(&targets, interval, &stopped)) }
    }

    /// Stops once each kind was planted at least once. Returns each planted lock with whether it
    /// was handled correctly.
    ///
    /// # Panics
    /// If a stale lock could not be planted.
    pub fn stop(self) -> Vec<PlantResult> {
        drop(self.stop);
        self.thread.join().expect("all stale locks were planted")
    }
}

fn plant_in_turn(targets: &[PathBuf], interval: Duration, stopped: &Receiver<()>) -> Vec<PlantResult> {
    let (mut results, mut old_locks): (_, Vec<(&PathBuf, PlantedLock)>) = (Vec::new(), Vec::new());
    for (nth, (kind, target)) in
        StaleLockKind::ALL.into_iter().cycle().zip(targets.iter().cycle()).enumerate()
    {
        let replaced = old_locks.extract_if(.., |(path, _)| *path == target);
        results.extend(replaced.map(|(_, planted)| (StaleLockKind::OldDirectory, planted.remove())));
        let Some(planted) = plant_when_free(kind, target) else { continue };
        sleep(Duration::from_millis(200));
        match kind {
            StaleLockKind::OldDirectory => old_locks.push((target, planted)),
            _ => results.push((kind, planted.remove())),
        }
        let is_stopped = stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout);
        if is_stopped && nth + 1 >= StaleLockKind::ALL.len() {
            break;
        }
    }
    results.extend(old_locks.into_iter().map(|(_, planted)| (StaleLockKind::OldDirectory, planted.remove())));
    results
}

/// Plants a stale lock once the lock's holder has released it. `None` if the lock is still held
/// after 15 s, because the holder was killed and no other process has taken the lock over.
fn plant_when_free(kind: StaleLockKind, target: &Path) -> Option<PlantedLock> {
    let deadline = Instant::now() + Duration::from_secs(15);
    loop {
        match kind.plant(target) {
            None if Instant::now() < deadline => sleep(Duration::from_millis(1)),
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
            assert!(kind.plant(&target).is_none(), "{kind:?}: a second one was planted");
            assert!(planted.remove() && lock.symlink_metadata().is_err(), "{kind:?}");
        }
        let planted = StaleLockKind::File.plant(&target).unwrap();
        std::fs::remove_file(&lock).unwrap();
        std::fs::create_dir(&lock).unwrap();
        assert!(
            !planted.remove() && lock.is_dir(),
            "the removal of a file is reported, and the other lock stays"
        );
        std::fs::remove_dir(&lock).unwrap();
        let planted = StaleLockKind::OldDirectory.plant(&target).unwrap();
        std::fs::remove_dir(&lock).unwrap();
        assert!(planted.remove(), "an old lock may be taken over");
    }
}
