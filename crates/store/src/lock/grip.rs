//! How the lock of a holder of ours that was killed is known at once. The holder has the kernel's own lock (flock) on
//! the directory for as long as it lives, and has then set a mark on it that no other tool sets, the sticky bit. So a
//! directory with the mark that nobody grips is one of the dead: the kernel lets go whatever ended the process, and
//! needs no pid, which says nothing about another container or the time before a reboot.
//!
//! Nothing is put inside, and there is no second file that could be left over. Where a file system has no flock on
//! directories there is no mark either, and the ten seconds count.

use super::Stamp;
use super::kernel::Flock;
use crate::directory::Directory;
use crate::error::Error;
use nix::sys::stat::{FileStat, Mode, fchmod, fstat};
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

/// From before a directory was made to the look at it: after so long somebody else may have taken it for abandoned, and
/// have made the one that is there.
const SURE: Duration = Duration::from_secs(5);

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
        self.0.elapsed() < SURE && self.1.elapsed().map_or(true, |passed| passed < SURE)
    }
}

/// What the directory `name` is that was just made, gripped and marked where that can be; none if it has gone, or may
/// be another's by now, since this process was stopped.
pub(super) fn hold(
    dir: &Directory,
    name: &str,
    before: Before,
) -> Result<Option<(Stamp, Option<Grip>)>, Error> {
    match dir.sub(name).map(|lock| lock.map(file)) {
        Ok(None) => Ok(None),
        Ok(Some(lock)) => {
            let stamp = Stamp::of(&fstat(&lock).map_err(Error::at("look at", &dir.join(name)))?);
            // What is open from here on is one directory, whatever becomes of its name.
            if !before.is_recent() {
                return Ok(None);
            }
            let grip = Flock::try_on(lock).ok();
            // Only what is gripped may have the mark.
            let grip = grip.filter(|grip| fchmod(grip.file(), Mode::S_ISVTX | Mode::S_IRWXU).is_ok());
            Ok(Some((stamp, grip)))
        }
        // Without descriptors it is a lock all the same.
        Err(_) => {
            let stamp = dir.stat(name)?.map(|stat| Stamp::of(&stat));
            Ok(stamp.filter(|_| before.is_recent()).map(|stamp| (stamp, None)))
        }
    }
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
