//! The lock that all programs on these files take: `mkdir PATH.lock`, released by `rmdir`; stale after ten
//! seconds without a change of its time stamp, or at once where a holder of ours is dead (`grip`).
//!
//! Nothing is ever put inside, and what is no empty directory is never removed: another tool's, or a trap.
//! A stopped holder may find its lock gone, so it asks [`Lock::is_ours`] before it acts. The observed
//! behaviour is that of the npm package proper-lockfile 4.1.2 with its defaults.

mod grip;
mod holding;
mod kernel;
mod watch;

pub use holding::{Held, Holding};

pub(crate) use holding::holding;
pub(crate) use kernel::Flock;

use crate::directory::Directory;
use crate::error::Error;
use crate::file::rename_fresh;
use crate::pause::Pause;
use grip::{Before, Grip, hold, mark};
use nix::errno::Errno;
use nix::sys::stat::{FileStat, mkdirat};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;
use watch::{Look, Watch};

/// An abandoned lock is this old, by the wall clock or watched by us.
const STALE: Duration = Duration::from_secs(10);
/// A lock that looks old is watched this long: the clock may have jumped.
const SECOND_LOOK: Duration = Duration::from_millis(500);
/// Longer than a lock with a time stamp in the future must be watched.
const DEADLINE: Duration = Duration::from_secs(12);

/// As long as we hold one, about.
const HOLD: Duration = Duration::from_micros(50);
/// What may go by between two looks at one that is held for longer.
const LONGEST: Duration = Duration::from_millis(20);

/// A lock that is held; dropped, it is released.
#[derive(Debug)]
pub(crate) struct Lock<'d> {
    dir: &'d Directory,
    name: String,
    stamp: Stamp,
    /// Let go of after the directory is removed.
    _grip: Option<Grip>,
}

/// What tells one holding from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    seconds: i64,
    nanoseconds: i64,
}

impl Stamp {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
    fn of(stat: &FileStat) -> Stamp {
        let (seconds, nanoseconds) = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        Stamp { inode: stat.st_ino as u64, seconds, nanoseconds }
    }

    fn age(&self) -> Duration {
        let changed = Duration::from_secs(self.seconds.max(0) as u64);
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(changed)
    }

    fn is_old(&self) -> bool {
        self.age() > STALE
    }
}

impl<'d> Lock<'d> {
    /// Takes the lock of `target`, waiting up to twelve seconds.
    pub(crate) fn acquire(dir: &'d Directory, target: &str) -> Result<Lock<'d>, Error> {
        let name = format!("{target}.lock");
        let mut pause = Pause::new(DEADLINE, HOLD, LONGEST);
        let mut watch = Watch::new();
        failpoint::hit_before_call("lock.take")
            .map_err(|cause| Error::io("lock", &dir.join(&name), cause))?;
        loop {
            let before = Before::now();
            match mkdirat(dir, name.as_str(), mark()) {
                Ok(()) => {
                    failpoint::hit("lock.taken");
                    let held = hold(dir, &name, before)?;
                    failpoint::hit("lock.held");
                    match held {
                        Some((stamp, grip)) => return Ok(Lock { dir, stamp, name, _grip: grip }),
                        None if pause.wait() => continue,
                        None => {
                            let why = "another program took it away".to_owned();
                            return Err(Error::Locked { path: dir.join(&name), why });
                        }
                    }
                }
                Err(Errno::EEXIST) => {}
                Err(errno) => return Err(Error::io("lock", &dir.join(&name), errno)),
            }
            match watch.look(dir, &name)? {
                Look::Gone => {}
                Look::Abandoned => {
                    take_away(dir, &name, &watch)?;
                }
                Look::Held if pause.wait() => {}
                Look::Held => {
                    return Err(Error::Locked { path: dir.join(&name), why: watch.why().to_owned() });
                }
            }
        }
    }

    /// True unless somebody took it for abandoned while this process was stopped.
    pub(crate) fn is_ours(&self) -> Result<bool, Error> {
        Ok(self.dir.stat(&self.name)?.is_some_and(|stat| Stamp::of(&stat) == self.stamp))
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
pub(crate) fn release_stale(locks: Vec<(&Directory, String)>) -> Result<Vec<PathBuf>, Error> {
    let mut suspects = Vec::new();
    for (dir, name) in locks {
        suspects.extend(Suspect::at(dir, name)?);
    }
    if suspects.is_empty() {
        return Ok(Vec::new());
    }
    let mut pause = Pause::new(SECOND_LOOK, SECOND_LOOK, SECOND_LOOK);
    while pause.wait() {}
    let done: Vec<_> = suspects.into_iter().map(Suspect::release).collect();
    done.into_iter().filter_map(Result::transpose).collect()
}

/// What looks like an abandoned lock at the first look.
struct Suspect<'d> {
    dir: &'d Directory,
    name: String,
    watch: Watch,
}

impl<'d> Suspect<'d> {
    /// None if it is held, gone, or not known to be an empty directory: what may not be opened may be full.
    fn at(dir: &'d Directory, name: String) -> Result<Option<Suspect<'d>>, Error> {
        let mut watch = Watch::new();
        watch.look(dir, &name)?;
        let abandoned = matches!(holding::at(dir, &name), Ok(Holding::Abandoned(_)));
        Ok(abandoned.then_some(Suspect { dir, name, watch }))
    }

    /// Where it was; none if it is gone, changed or filled since the first look.
    fn release(mut self) -> Result<Option<PathBuf>, Error> {
        let Look::Abandoned = self.watch.look(self.dir, &self.name)? else { return Ok(None) };
        match take_away(self.dir, &self.name, &self.watch) {
            Ok(Taken::Removed) => Ok(Some(self.dir.join(&self.name))),
            Ok(Taken::Missed) | Err(Error::Locked { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What became of an attempt on an abandoned lock.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Removed,
    /// Somebody else was faster.
    Missed,
}

/// Removes an abandoned lock, unless somebody else was faster and it is a fresh one by now: it is moved to
/// a name of our own first, where its stamp can't change hands any more.
fn take_away(dir: &Directory, name: &str, watch: &Watch) -> Result<Taken, Error> {
    if let Ok(Some(lock)) = dir.sub(name)
        && !lock.names()?.is_empty()
    {
        let why = "it is a directory with something in it, which no program removes".to_owned();
        return Err(Error::Locked { path: dir.join(name), why });
    }
    let moved = format!(".{name}.stale.{}", Uuid::new_v4().simple());
    failpoint::hit("lock.move");
    match rename_fresh(dir, name, &moved) {
        Ok(()) => failpoint::hit("lock.moved"),
        Err(Errno::ENOENT) => return Ok(Taken::Missed),
        Err(errno) => return Err(Error::io("take over", &dir.join(name), errno)),
    }
    let expected = watch.seen.map(|(stamp, _)| stamp);
    let found = dir.stat(&moved)?.map(|stat| Stamp::of(&stat));
    if found != expected && rename_fresh(dir, &moved, name).is_ok() {
        return Ok(Taken::Missed);
    }
    dir.rmdir(&moved)?;
    Ok(if found == expected { Taken::Removed } else { Taken::Missed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_changed_hands_is_known_and_left() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
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
        let directory = Directory::open(dir.path()).unwrap();
        let path = dir.path().join("x.json.lock");
        std::fs::create_dir(&path).unwrap();
        let mode = path.metadata().unwrap().permissions();
        for before in
            [Before::ago(Duration::from_secs(6), Duration::ZERO), Before::ago(Duration::ZERO, STALE)]
        {
            assert!(hold(&directory, "x.json.lock", before).unwrap().is_none());
            assert_eq!(path.metadata().unwrap().permissions(), mode, "no mark on what may be another's");
        }
        assert!(hold(&directory, "x.json.lock", Before::now()).unwrap().is_some());
        // Now it has the mark: made by one of ours, so whoever gets the grip has it.
        let long_ago = Before::ago(Duration::from_secs(6), Duration::ZERO);
        let (_, grip) = hold(&directory, "x.json.lock", long_ago).unwrap().unwrap();
        assert!(grip.is_some());
        assert!(
            hold(&directory, "x.json.lock", Before::now()).unwrap().is_none(),
            "reached for by another one"
        );
    }

    #[test]
    fn a_lock_has_its_mark_from_the_beginning_and_who_is_slow_to_grip_it_is_not_robbed_at_the_first_look() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        let before = Before::now();
        mkdirat(&directory, "x.json.lock", mark()).unwrap();
        assert!(matches!(holding::at(&directory, "x.json.lock").unwrap(), Holding::Abandoned(_)), "marked");
        assert!(matches!(Watch::new().look(&directory, "x.json.lock").unwrap(), Look::Held));
        assert!(hold(&directory, "x.json.lock", before).unwrap().is_some());
    }

    #[test]
    fn a_lock_that_turns_out_fresh_is_put_back() {
        let dir = tempfile::TempDir::new().unwrap();
        let directory = Directory::open(dir.path()).unwrap();
        let lock = Lock::acquire(&directory, "x.json").unwrap();
        let old = Stamp { seconds: lock.stamp.seconds - 60, ..lock.stamp };
        let watch = Watch::having_seen(old);
        assert_eq!(take_away(&directory, "x.json.lock", &watch).unwrap(), Taken::Missed);
        assert!(lock.is_ours().unwrap());
        let watch = Watch::having_seen(lock.stamp);
        assert_eq!(take_away(&directory, "x.json.lock", &watch).unwrap(), Taken::Removed);
        assert_eq!(directory.names().unwrap(), Vec::<String>::new());
    }
}
