//! The lock that all programs on these files take: `mkdir PATH.lock`, released by `rmdir`; stale after ten
//! seconds without a change of its time stamp, or at once where a holder of ours is dead (`grip`).
//!
//! Nothing is ever put inside, and what is no empty directory is never removed: another tool's, or a trap.
//! A stopped holder may find its lock gone, so it asks [`Lock::is_ours`] before it acts. The observed
//! behaviour is that of the npm package proper-lockfile 4.1.2 with its defaults.

mod flock;
mod holder_liveness;
mod inspect;
mod stale_watch;
mod stamp;

pub use inspect::{LockInfo, LockState};

pub(crate) use flock::Flock;
pub(crate) use inspect::lock_state;

use crate::backoff::Backoff;
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::rename::rename_noreplace;
use holder_liveness::{CreationTime, HolderFlock, confirm, sticky_mode};
use nix::errno::Errno;
use nix::sys::stat::mkdirat;
use stale_watch::{LockObservation, StaleWatch};
use stamp::{LockStamp, STALE_CONFIRMATION};
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// Longer than a lock with a time stamp in the future must be watched.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(12);

/// As long as we hold one, about.
const INITIAL_BACKOFF: Duration = Duration::from_micros(50);
/// What may go by between two looks at one that is held for longer.
const MAX_BACKOFF: Duration = Duration::from_millis(20);

/// A lock that is held; dropped, it is released.
#[derive(Debug)]
pub(crate) struct Lock<'d> {
    dir: &'d DirHandle,
    name: String,
    stamp: LockStamp,
    /// Let go of after the directory is removed.
    _grip: Option<HolderFlock>,
}

impl<'d> Lock<'d> {
    /// Takes the lock of `target`, waiting up to twelve seconds.
    pub(crate) fn acquire(dir: &'d DirHandle, target: &str) -> Result<Lock<'d>, Error> {
        let name = format!("{target}.lock");
        let mut pause = Backoff::new(ACQUIRE_TIMEOUT, INITIAL_BACKOFF, MAX_BACKOFF);
        let mut watch = StaleWatch::new();
        failpoint::hit_before_call("lock.take")
            .map_err(|cause| Error::io("lock", &dir.join(&name), cause))?;
        loop {
            let before = CreationTime::now();
            match mkdirat(dir, name.as_str(), sticky_mode()) {
                Ok(()) => {
                    failpoint::hit("lock.taken");
                    let held = confirm(dir, &name, before)?;
                    failpoint::hit("lock.held");
                    match held {
                        Some((stamp, grip)) => return Ok(Lock { dir, stamp, name, _grip: grip }),
                        None if pause.wait() => continue,
                        None => {
                            let why = "another program took it away".to_owned();
                            return Err(Error::Locked { path: dir.join(&name), reason: why });
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
                LockObservation::Held if pause.wait() => {}
                LockObservation::Held => {
                    return Err(Error::Locked { path: dir.join(&name), reason: watch.reason().to_owned() });
                }
            }
        }
    }

    /// True unless somebody took it for abandoned while this process was stopped.
    pub(crate) fn is_ours(&self) -> Result<bool, Error> {
        Ok(self.dir.stat(&self.name)?.is_some_and(|stat| LockStamp::from_stat(&stat) == self.stamp))
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        if matches!(self.is_ours(), Ok(true)) {
            // One that stays becomes stale, and the next one takes it over.
            drop(self.dir.rmdir(&self.name));
        }
    }
}

/// Removes those of `locks` that are abandoned empty directories, and tells which. One second look, half a
/// second after the first, serves for all; nothing that looks held is waited for.
///
/// One that can't be removed does not keep the others; the first such failure is the result then.
pub(crate) fn remove_stale(locks: Vec<(&DirHandle, String)>) -> Result<Vec<PathBuf>, Error> {
    let mut suspects = Vec::new();
    for (dir, name) in locks {
        suspects.extend(StaleCandidate::examine(dir, name)?);
    }
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let mut pause = Backoff::new(STALE_CONFIRMATION, STALE_CONFIRMATION, STALE_CONFIRMATION);
    while pause.wait() {}
    let done: Vec<_> = suspects.into_iter().map(StaleCandidate::remove_if_stale).collect();
    done.into_iter().filter_map(Result::transpose).collect()
}

/// What looks like an abandoned lock at the first look.
struct StaleCandidate<'d> {
    dir: &'d DirHandle,
    name: String,
    watch: StaleWatch,
}

impl<'d> StaleCandidate<'d> {
    /// None if it is held, gone, or not known to be an empty directory: what may not be opened may be full.
    fn examine(dir: &'d DirHandle, name: String) -> Result<Option<StaleCandidate<'d>>, Error> {
        let mut watch = StaleWatch::new();
        watch.observe(dir, &name)?;
        let abandoned = matches!(inspect::named_lock_state(dir, &name), Ok(LockState::Stale(_)));
        Ok(abandoned.then_some(StaleCandidate { dir, name, watch }))
    }

    /// Where it was; none if it is gone, changed or filled since the first look.
    fn remove_if_stale(mut self) -> Result<Option<PathBuf>, Error> {
        let LockObservation::Stale = self.watch.observe(self.dir, &self.name)? else { return Ok(None) };
        match take_over(self.dir, &self.name, &self.watch) {
            Ok(TakeoverResult::Removed) => Ok(Some(self.dir.join(&self.name))),
            Ok(TakeoverResult::LostRace) | Err(Error::Locked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What became of an attempt on an abandoned lock.
#[derive(Debug, PartialEq, Eq)]
enum TakeoverResult {
    Removed,
    /// Somebody else was faster.
    LostRace,
}

/// Removes an abandoned lock, unless somebody else was faster and it is a fresh one by now: it is moved to
/// a name of our own first, where its stamp can't change hands any more.
fn take_over(dir: &DirHandle, name: &str, watch: &StaleWatch) -> Result<TakeoverResult, Error> {
    if let Ok(Some(lock)) = dir.open_dir(name)
        && !lock.file_names()?.is_empty()
    {
        let why = "it is a directory with something in it, which no program removes".to_owned();
        return Err(Error::Locked { path: dir.join(name), reason: why });
    }
    let moved = format!(".{name}.stale.{}", Uuid::new_v4().simple());
    failpoint::hit("lock.move");
    match rename_noreplace(dir, name, &moved) {
        Ok(()) => failpoint::hit("lock.moved"),
        Err(Errno::ENOENT) => return Ok(TakeoverResult::LostRace),
        Err(errno) => return Err(Error::io("take over", &dir.join(name), errno)),
    }
    let expected = watch.last_seen.map(|(stamp, _)| stamp);
    let found = dir.stat(&moved)?.map(|stat| LockStamp::from_stat(&stat));
    if found != expected && rename_noreplace(dir, &moved, name).is_ok() {
        return Ok(TakeoverResult::LostRace);
    }
    dir.rmdir(&moved)?;
    Ok(if found == expected { TakeoverResult::Removed } else { TakeoverResult::LostRace })
}

#[cfg(test)]
mod tests {
    use super::stamp::LOCK_STALE_AFTER;
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn a_lock_that_changed_hands_is_known_and_left() {
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
        assert!(path.is_dir(), "another's lock is not released");
    }

    #[test]
    fn a_directory_that_was_made_long_ago_may_be_anothers_and_is_left_as_it_is() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let path = dir.path().join("x.json.lock");
        std::fs::create_dir(&path).unwrap();
        let mode = path.metadata().unwrap().permissions();
        for before in [
            CreationTime::ago(Duration::from_secs(6), Duration::ZERO),
            CreationTime::ago(Duration::ZERO, LOCK_STALE_AFTER),
        ] {
            assert!(confirm(&directory, "x.json.lock", before).unwrap().is_none());
            assert_eq!(path.metadata().unwrap().permissions(), mode, "no mark on what may be another's");
        }
        assert!(confirm(&directory, "x.json.lock", CreationTime::now()).unwrap().is_some());
        // Now it has the mark: made by one of ours, so whoever gets the grip has it.
        let long_ago = CreationTime::ago(Duration::from_secs(6), Duration::ZERO);
        let (_, grip) = confirm(&directory, "x.json.lock", long_ago).unwrap().unwrap();
        assert!(grip.is_some());
        assert!(
            confirm(&directory, "x.json.lock", CreationTime::now()).unwrap().is_none(),
            "reached for by another one"
        );
    }

    #[test]
    fn a_lock_has_its_mark_from_the_beginning_and_who_is_slow_to_grip_it_is_not_robbed_at_the_first_look() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = DirHandle::open(dir.path()).unwrap();
        let before = CreationTime::now();
        mkdirat(&directory, "x.json.lock", sticky_mode()).unwrap();
        assert!(
            matches!(inspect::named_lock_state(&directory, "x.json.lock").unwrap(), LockState::Stale(_)),
            "marked"
        );
        assert!(matches!(
            StaleWatch::new().observe(&directory, "x.json.lock").unwrap(),
            LockObservation::Held
        ));
        assert!(confirm(&directory, "x.json.lock", before).unwrap().is_some());
    }

    #[test]
    fn a_lock_that_turns_out_fresh_is_put_back() {
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
