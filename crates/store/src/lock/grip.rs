//! How the lock of a holder of ours that was killed is known at once. It is made with a mark that no other tool sets, the
//! sticky bit, and gripped at once: its holder has the kernel's own lock (flock) on the directory for as long as it
//! lives. So a directory with the mark that nobody has gripped for a while is one of the dead: the kernel lets go
//! whatever ended the process, and needs no pid, which says nothing about another container or the time before a reboot.
//!
//! Whoever is killed between the two leaves one with the mark; whoever is stopped there finds it gripped by another one,
//! or gone. Nothing is put inside, and there is no second file that could be left over. Where a file system has no
//! flock on directories, the ten seconds count.

use super::Stamp;
use super::kernel::Flock;
use crate::directory::Directory;
use crate::error::Error;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmod, fchmodat, fstat};
use nix::unistd::geteuid;
use std::fs::{File, TryLockError};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

/// The kernel's lock on a lock's directory; dropped, it is free.
pub(super) type Grip = Flock;

/// What came of reaching for one.
#[derive(Debug)]
pub(super) enum Reached {
    /// Nobody of ours holds the lock, or is taking it away.
    Got(Grip),
    /// Somebody of ours does.
    Held,
    /// It is not what it was any more, or can't be told here.
    Unknown,
}

/// A directory with the mark is watched for so long before somebody reaches for it: whoever has just made it grips it
/// sooner, but for one that is stopped just then.
pub(super) const WINDOW: Duration = Duration::from_millis(50);

/// When a directory was about to be made, by both clocks: the one can be set, the other stands still with the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before(Instant, SystemTime);

impl Before {
    pub(super) fn now() -> Before {
        Before(Instant::now(), SystemTime::now())
    }

    #[cfg(test)]
    pub(super) fn ago(watch: Duration, wall: Duration) -> Before {
        Before(Instant::now().checked_sub(watch).unwrap(), SystemTime::now() - wall)
    }

    fn is_recent(self) -> bool {
        self.0.elapsed() < WINDOW && self.1.elapsed().map_or(true, |passed| passed < WINDOW)
    }
}

/// With what a lock is made: that no other tool makes one so, and that nobody else enters it.
pub(super) fn mark() -> Mode {
    Mode::S_ISVTX | Mode::S_IRWXU
}

/// What the directory `name` is that was just made, gripped where that can be; none if it has gone, or may be another's
/// by now, since this process was stopped.
pub(super) fn hold(
    dir: &Directory,
    name: &str,
    before: Before,
) -> Result<Option<(Stamp, Option<Grip>)>, Error> {
    match dir.sub(name) {
        Ok(None) => Ok(None),
        Ok(Some(lock)) => {
            let stat = fstat(&lock).map_err(Error::at("look at", &dir.join(name)))?;
            let grip = Flock::try_on(file(lock));
            Ok(match grip {
                Ok(grip) => holds(dir, name, &stat, &grip, before).then(|| (Stamp::of(&stat), Some(grip))),
                // Taken for one of the dead.
                Err((_, TryLockError::WouldBlock)) => None,
                Err(_) => before.is_recent().then(|| (Stamp::of(&stat), None)),
            })
        }
        // Without descriptors it is a lock all the same.
        Err(_) => without_grip(dir, name, before),
    }
}

/// Nobody has reached for it yet, or somebody may have: then it is ours where it has the mark and is at its place.
fn holds(dir: &Directory, name: &str, stat: &FileStat, grip: &Grip, before: Before) -> bool {
    if before.is_recent() {
        // Not every file system takes the mark from the beginning. Only what is gripped may have it later.
        return is_marked(stat) || fchmod(grip.file(), mark()).is_ok();
    }
    is_marked(stat) && is(dir.stat(name).ok().flatten(), Stamp::of(stat))
}

/// Only what is gripped may have the mark.
fn without_grip(dir: &Directory, name: &str, before: Before) -> Result<Option<(Stamp, Option<Grip>)>, Error> {
    let unmarked = fchmodat(dir, name, Mode::S_IRWXU, FchmodatFlags::FollowSymlink);
    unmarked.map_err(Error::at("lock", &dir.join(name)))?;
    let stamp = dir.stat(name)?.map(|stat| Stamp::of(&stat));
    Ok(stamp.filter(|_| before.is_recent()).map(|stamp| (stamp, None)))
}

/// True if a holder of ours had a grip on it.
pub(super) fn is_marked(stat: &FileStat) -> bool {
    Mode::from_bits_truncate(stat.st_mode).contains(Mode::S_ISVTX) && stat.st_uid == geteuid().as_raw()
}

/// Reaches for the grip on the lock that `stamp` was seen of.
pub(super) fn reach(dir: &Directory, name: &str, stamp: Stamp) -> Reached {
    let Some(lock) = dir.sub(name).ok().flatten() else { return Reached::Unknown };
    match Flock::try_on(file(lock)) {
        // Whoever had the grip before may have taken it away, and another one may be there.
        Ok(grip) if is(fstat(grip.file()).ok(), stamp) && is(dir.stat(name).ok().flatten(), stamp) => {
            Reached::Got(grip)
        }
        Err((_, TryLockError::WouldBlock)) => Reached::Held,
        _ => Reached::Unknown,
    }
}

fn is(stat: Option<FileStat>, stamp: Stamp) -> bool {
    stat.is_some_and(|stat| Stamp::of(&stat) == stamp)
}

fn file(directory: Directory) -> File {
    File::from(OwnedFd::from(directory))
}
