//! The lock that all programs take before they change the files of a team. `mkdir PATH.lock` takes
//! the lock and `rmdir` releases it.
//!
//! Any program may take over a stale lock. A lock is stale if its timestamp has not changed for ten
//! seconds. If the holder was one of teamd's programs and is dead, its lock is stale at once
//! ([`holder_liveness`]). The protocol is that of the npm package proper-lockfile 4.1.2 with its
//! default options.
//!
//! A lock is an empty directory. Invariant: a directory with content, or a file, is not a lock and
//! is never removed; `no_foreign_lock_or_file_is_removed` checks it. A holder that was stopped for
//! a while may have lost its lock. So every holder checks [`Lock::is_ours`] before each change.

mod holder_liveness;
mod inspect;
mod lock_inode_and_age;
mod stale_watch;

pub use inspect::{LockInfo, LockState};

pub(crate) use inspect::lock_state;

use crate::backoff::Backoff;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::rename::rename_noreplace;
use holder_liveness::{CreationTime, HolderFlock, confirm, sticky_mode};
use lock_inode_and_age::{LockStamp, STALE_CONFIRMATION};
use nix::errno::Errno;
use nix::sys::stat::mkdirat;
use stale_watch::{LockObservation, StaleWatch};
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// How long to wait for a lock. This is longer than the ten seconds after which an abandoned lock
/// is stale at the latest.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(12);

/// First wait between two attempts to take a lock. The wait is short because teamd's programs hold
/// a lock for about this long.
const INITIAL_BACKOFF: Duration = Duration::from_micros(50);
/// Longest wait between two attempts to take a lock.
const MAX_BACKOFF: Duration = Duration::from_millis(20);

/// A held lock. Dropping it releases the lock.
#[derive(Debug)]
pub(crate) struct Lock<'d> {
    dir: &'d DirHandle,
    name: String,
    stamp: LockStamp,
    /// Released after the directory is removed.
    _flock: Option<HolderFlock>,
}

impl<'d> Lock<'d> {
    /// Takes the lock of `target`. Waits for up to twelve seconds.
    ///
    /// # Errors
    /// `Locked` if another program keeps the lock, or if the lock is not an empty directory; `Io`.
    pub(crate) fn acquire(dir: &'d DirHandle, target: &str) -> Result<Lock<'d>, Error> {
        let name = format!("{target}.lock");
        let mut backoff = Backoff::new(ACQUIRE_TIMEOUT, INITIAL_BACKOFF, MAX_BACKOFF);
        let mut watch = StaleWatch::new();
        failpoint::hit_before_call("lock.mkdir")
            .map_err(|cause| Error::io("lock", &dir.join(&name), cause))?;
        loop {
            let creation_time = CreationTime::now();
            match mkdirat(dir, name.as_str(), sticky_mode()) {
                Ok(()) => {
                    failpoint::hit("lock.created");
                    let stamp_and_flock = confirm(dir, &name, creation_time)?;
                    failpoint::hit("lock.confirmed");
                    match stamp_and_flock {
                        Some((stamp, flock)) => return Ok(Lock { dir, stamp, name, _flock: flock }),
                        None if backoff.wait() => continue,
                        None => {
                            let reason = "another program took it away".to_owned();
                            return Err(Error::Locked { path: dir.join(&name), reason });
                        }
                    }
                }
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(Error::io("lock", &dir.join(&name), errno)),
            }
            match watch.observe(dir, &name)? {
                LockObservation::Released => {}
                LockObservation::Stale => {
                    take_over(dir, &name, &watch)?;
                }
                LockObservation::Held if backoff.wait() => {}
                LockObservation::Held => {
                    return Err(Error::Locked { path: dir.join(&name), reason: watch.reason().to_owned() });
                }
            }
        }
    }

    /// Whether this process still holds the lock. If the process was stopped for a while, another
    /// program may have considered the lock stale and taken it.
    pub(crate) fn is_ours(&self) -> Result<bool, Error> {
        Ok(self.dir.stat(&self.name)?.is_some_and(|stat| LockStamp::from_stat(&stat) == self.stamp))
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if matches!(self.is_ours(), Ok(true)) {
            // A lock that can't be removed becomes stale, and the next program takes it over.
            drop(self.dir.rmdir(&self.name));
        }
    }
}

/// Removes the stale locks among `locks` and returns their paths. Locks that look stale are checked
/// a second time after half a second. Locks that look held are skipped.
///
/// # Errors
/// The first error of a removal. The other stale locks are removed anyway.
pub(crate) fn remove_stale(locks: Vec<(&DirHandle, String)>) -> Result<Vec<PathBuf>, Error> {
    let mut candidates = Vec::new();
    for (dir, name) in locks {
        candidates.extend(StaleCandidate::examine(dir, name)?);
    }
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let mut backoff = Backoff::new(STALE_CONFIRMATION, STALE_CONFIRMATION, STALE_CONFIRMATION);
    while backoff.wait() {}
    let results: Vec<_> = candidates.into_iter().map(StaleCandidate::remove_if_stale).collect();
    results.into_iter().filter_map(Result::transpose).collect()
}

/// A lock that seems stale after one check.
struct StaleCandidate<'d> {
    dir: &'d DirHandle,
    name: String,
    watch: StaleWatch,
}

impl<'d> StaleCandidate<'d> {
    /// The first of two checks for a stale lock. Returns the lock if it looks stale. `None` if the
    /// lock is held or was released, or if its path does not lead to an empty, readable directory.
    fn examine(dir: &'d DirHandle, name: String) -> Result<Option<StaleCandidate<'d>>, Error> {
        let mut watch = StaleWatch::new();
        watch.observe(dir, &name)?;
        let is_stale = matches!(inspect::named_lock_state(dir, &name), Ok(LockState::Stale(_)));
        Ok(is_stale.then_some(StaleCandidate { dir, name, watch }))
    }

    /// Removes the lock and returns its path. `None` if the lock was released or changed since the
    /// first check, or if its directory is no longer empty.
    fn remove_if_stale(mut self) -> Result<Option<PathBuf>, Error> {
        let LockObservation::Stale = self.watch.observe(self.dir, &self.name)? else { return Ok(None) };
        match take_over(self.dir, &self.name, &self.watch) {
            Ok(TakeoverResult::Removed) => Ok(Some(self.dir.join(&self.name))),
            Ok(TakeoverResult::LostRace) | Err(Error::Locked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The result of [`take_over`].
#[derive(Debug, PartialEq, Eq)]
enum TakeoverResult {
    Removed,
    /// Another process removed the lock or took it first.
    LostRace,
}

/// Removes a stale lock, unless another process has already replaced it by a new lock. The function
/// first renames the lock to a unique name, and then checks the stamp (inode and time) of the
/// renamed lock. If the stamp is not that of the stale lock, the renamed lock is a new one and gets
/// its old name back.
fn take_over(dir: &DirHandle, name: &str, watch: &StaleWatch) -> Result<TakeoverResult, Error> {
    if let Ok(Some(lock)) = dir.open_dir(name)
        && !lock.file_names()?.is_empty()
    {
        let reason = "it is a directory with something in it, which no program removes".to_owned();
        return Err(Error::Locked { path: dir.join(name), reason });
    }
    let moved_name = format!(".{name}.stale.{}", Uuid::new_v4().simple());
    failpoint::hit("lock.take-over");
    match rename_noreplace(dir, name, &moved_name) {
        Ok(()) => failpoint::hit("lock.taken-over"),
        Err(Errno::ENOENT) => return Ok(TakeoverResult::LostRace),
        Err(errno) => return Err(Error::io("take over", &dir.join(name), errno)),
    }
    let expected = watch.last_seen.map(|(stamp, _)| stamp);
    let moved_stamp = dir.stat(&moved_name)?.map(|stat| LockStamp::from_stat(&stat));
    if moved_stamp != expected && rename_noreplace(dir, &moved_name, name).is_ok() {
        return Ok(TakeoverResult::LostRace);
    }
    dir.rmdir(&moved_name)?;
    Ok(if moved_stamp == expected { TakeoverResult::Removed } else { TakeoverResult::LostRace })
}

#[cfg(test)]
mod tests {
    use super::lock_inode_and_age::LOCK_STALE_AFTER;
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_lock_that_was_replaced_is_not_ours_and_not_released() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let path = dir.path().join("x.json.lock");
        let lock = Lock::acquire(&directory, "x.json").unwrap();
        assert!(path.is_dir() && lock.is_ours().unwrap());
        std::fs::remove_dir(&path).unwrap();
        assert!(!lock.is_ours().unwrap());
        std::fs::create_dir(&path).unwrap();
        std::fs::File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
        assert!(!lock.is_ours().unwrap());
        drop(lock);
        assert!(path.is_dir(), "the lock of another program is not released");
    }

    #[test]
    fn a_directory_created_long_ago_is_not_confirmed_and_not_changed() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let path = dir.path().join("x.json.lock");
        std::fs::create_dir(&path).unwrap();
        let mode = path.metadata().unwrap().permissions();
        for creation_time in [
            CreationTime::with_age(Duration::from_secs(6), Duration::ZERO),
            CreationTime::with_age(Duration::ZERO, LOCK_STALE_AFTER),
        ] {
            assert!(confirm(&directory, "x.json.lock", creation_time).unwrap().is_none());
            assert_eq!(path.metadata().unwrap().permissions(), mode, "a foreign lock gets no sticky bit");
        }
        assert!(confirm(&directory, "x.json.lock", CreationTime::now()).unwrap().is_some());
        // The lock now has the sticky bit, and its flock is free, because the result of `confirm`
        // was dropped. A free flock shows that no other process has taken over the lock. So the
        // creator can confirm the lock again, even six seconds after `mkdir`.
        let long_ago = CreationTime::with_age(Duration::from_secs(6), Duration::ZERO);
        let (_, flock) = confirm(&directory, "x.json.lock", long_ago).unwrap().unwrap();
        assert!(flock.is_some());
        assert!(
            confirm(&directory, "x.json.lock", CreationTime::now()).unwrap().is_none(),
            "another process has the flock"
        );
    }

    #[test]
    fn a_lock_is_sticky_from_its_creation_and_not_taken_over_at_the_first_check() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let creation_time = CreationTime::now();
        mkdirat(&directory, "x.json.lock", sticky_mode()).unwrap();
        assert!(
            matches!(inspect::named_lock_state(&directory, "x.json.lock").unwrap(), LockState::Stale(_)),
            "the lock is sticky and has no flock"
        );
        assert!(matches!(
            StaleWatch::new().observe(&directory, "x.json.lock").unwrap(),
            LockObservation::Held
        ));
        assert!(confirm(&directory, "x.json.lock", creation_time).unwrap().is_some());
    }

    #[test]
    fn a_renamed_lock_that_is_not_stale_is_moved_back() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let lock = Lock::acquire(&directory, "x.json").unwrap();
        let old = LockStamp { seconds: lock.stamp.seconds - 60, ..lock.stamp };
        let watch = StaleWatch::with_last_seen(old);
        assert_eq!(take_over(&directory, "x.json.lock", &watch).unwrap(), TakeoverResult::LostRace);
        assert!(lock.is_ours().unwrap());
        let watch = StaleWatch::with_last_seen(lock.stamp);
        assert_eq!(take_over(&directory, "x.json.lock", &watch).unwrap(), TakeoverResult::Removed);
        assert_eq!(directory.file_names().unwrap(), Vec::<String>::new());
    }
}
