//! What stands in a lock's place and is no live lock: left by a process that was killed, or put
//! there by somebody. Plants each kind beside the files of a test, and tells whether it was treated
//! as it must be.

use crate::sleep;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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
    /// Takes it away, if it still is there. False where somebody else did who never should have:
    /// what is no empty directory is no lock.
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

/// Puts one after the other in the locks' places of some files, a kind after the other, and takes
/// each away after a moment, but for the dead ones: somebody else is to take these over, until
/// another is to stand there.
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

    /// Stops when each kind has had its turn, and tells what was planted, with whether it was
    /// treated as it must be.
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

/// Whoever holds the lock lets it go in a moment. None where it is of one who was killed with it,
/// and nobody comes who would take it over.
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
