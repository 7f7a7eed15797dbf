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
use nix::errno::Errno;
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
/// So long after it was about to be made nobody can have watched it for that long, whatever the clocks' ticks.
const OURS: Duration = Duration::from_millis(25);
/// The same where it has no mark that would tell of a dead holder: others take none that is younger than ten seconds.
const SURE: Duration = Duration::from_secs(5);
/// Whether a directory has the mark as soon as it is made; else it gets it later.
const AT_ONCE: bool = cfg!(target_os = "linux");

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

    fn is_within(self, time: Duration) -> bool {
        self.0.elapsed() < time && self.1.elapsed().map_or(true, |passed| passed < time)
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
            Ok(match Flock::try_on(file(lock)) {
                Ok(grip) => holds(dir, name, &stat, &grip, before).then(|| (Stamp::of(&stat), Some(grip))),
                // Taken for one of the dead.
                Err((_, TryLockError::WouldBlock)) => None,
                // There is no flock here, so the mark says nothing.
                Err((lock, TryLockError::Error(_))) => before.is_within(SURE).then(|| {
                    fchmod(&lock, Mode::S_IRWXU).ok();
                    (Stamp::of(&stat), None)
                }),
            })
        }
        // Without descriptors it is a lock all the same.
        Err(_) if before.is_within(OURS) => without_grip(dir, name, before),
        Err(_) => Ok(None),
    }
}

/// Nobody has reached for it yet, or somebody may have: then it is ours where it has the mark and is at its place.
fn holds(dir: &Directory, name: &str, stat: &FileStat, grip: &Grip, before: Before) -> bool {
    if is_marked(stat) && !before.is_within(OURS) {
        return is(dir.stat(name).ok().flatten(), Stamp::of(stat));
    }
    let is_ours = before.is_within(if AT_ONCE { OURS } else { SURE });
    if is_ours && !is_marked(stat) {
        // Only what is gripped may have it. Some file systems have none such; there the ten seconds count.
        fchmod(grip.file(), mark()).ok();
    }
    is_ours
}

/// Only what is gripped may have the mark.
fn without_grip(dir: &Directory, name: &str, before: Before) -> Result<Option<(Stamp, Option<Grip>)>, Error> {
    match fchmodat(dir, name, Mode::S_IRWXU, FchmodatFlags::FollowSymlink) {
        Err(Errno::ENOENT) => return Ok(None),
        changed => changed.map_err(Error::at("lock", &dir.join(name)))?,
    }
    let stamp = dir.stat(name)?.map(|stat| Stamp::of(&stat));
    Ok(stamp.filter(|_| before.is_within(WINDOW)).map(|stamp| (stamp, None)))
}

/// True if one of ours made it, and has or had a grip on it, or was about to.
pub(super) fn is_marked(stat: &FileStat) -> bool {
    Mode::from_bits_truncate(stat.st_mode).contains(Mode::S_ISVTX) && stat.st_uid == geteuid().as_raw()
}

/// The same of one that is gripped now.
pub(super) fn has_mark(grip: &Grip) -> bool {
    fstat(grip.file()).is_ok_and(|stat| is_marked(&stat))
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
