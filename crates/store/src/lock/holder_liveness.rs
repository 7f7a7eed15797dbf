//! How the lock of a holder of ours that was killed is known at once. It is made with a mark that no other tool sets, the
//! sticky bit, and gripped at once: its holder has the kernel's own lock (flock) on the directory for as long as it
//! lives. So a directory with the mark that nobody has gripped for a while is one of the dead: the kernel lets go
//! whatever ended the process, and needs no pid, which says nothing about another container or the time before a reboot.
//!
//! Whoever is killed between the two leaves one with the mark; whoever is stopped there finds it gripped by another one,
//! or gone. Nothing is put inside, and there is no second file that could be left over. Where a file system has no
//! flock on directories, the ten seconds count.

use super::flock::Flock;
use super::stamp::LockStamp;
use crate::dir_handle::DirHandle;
use crate::error::Error;
use nix::errno::Errno;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmod, fchmodat, fstat};
use nix::unistd::geteuid;
use std::fs::{File, TryLockError};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

/// The kernel's lock on a lock's directory; dropped, it is free.
pub(super) type HolderFlock = Flock;

/// What came of reaching for one.
#[derive(Debug)]
pub(super) enum HolderProbe {
    /// Nobody of ours holds the lock, or is taking it away.
    NotAlive(HolderFlock),
    /// Somebody of ours does.
    Alive,
    /// It is not what it was any more, or can't be told here.
    Unknown,
}

/// A directory with the mark is watched for so long before somebody reaches for it: whoever has just made it grips it
/// sooner, but for one that is stopped just then.
pub(super) const PROBE_DELAY: Duration = Duration::from_millis(50);
/// So long after it was about to be made nobody can have watched it for that long, whatever the clocks' ticks.
const UNPROBED_FOR: Duration = Duration::from_millis(25);
/// The same where it has no mark that would tell of a dead holder: others take none that is younger than ten seconds.
const UNPROBED_WITHOUT_FLOCK: Duration = Duration::from_secs(5);
/// Whether a directory has the mark as soon as it is made; else it gets it later.
const MKDIR_SETS_STICKY: bool = cfg!(target_os = "linux");

/// When a directory was about to be made, by both clocks: the one can be set, the other stands still with the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct CreationTime(Instant, SystemTime);

impl CreationTime {
    pub(super) fn now() -> CreationTime {
        CreationTime(Instant::now(), SystemTime::now())
    }

    #[cfg(test)]
    pub(super) fn ago(watch: Duration, wall: Duration) -> CreationTime {
        CreationTime(Instant::now().checked_sub(watch).unwrap(), SystemTime::now() - wall)
    }

    fn is_within(self, time: Duration) -> bool {
        self.0.elapsed() < time && self.1.elapsed().map_or(true, |passed| passed < time)
    }
}

/// With what a lock is made: that no other tool makes one so, and that nobody else enters it.
pub(super) fn sticky_mode() -> Mode {
    Mode::S_ISVTX | Mode::S_IRWXU
}

/// What the directory `name` is that was just made, gripped where that can be; none if it has gone, or may be another's
/// by now, since this process was stopped.
pub(super) fn confirm(
    dir: &DirHandle,
    name: &str,
    before: CreationTime,
) -> Result<Option<(LockStamp, Option<HolderFlock>)>, Error> {
    match dir.open_dir(name) {
        Ok(None) => Ok(None),
        Ok(Some(lock)) => {
            let stat = fstat(&lock).map_err(Error::from_errno("look at", &dir.join(name)))?;
            Ok(match Flock::try_lock(into_file(lock)) {
                Ok(grip) => is_still_held(dir, name, &stat, &grip, before)
                    .then(|| (LockStamp::from_stat(&stat), Some(grip))),
                // Taken for one of the dead.
                Err((_, TryLockError::WouldBlock)) => None,
                // There is no flock here, so the mark says nothing.
                Err((lock, TryLockError::Error(_))) => before.is_within(UNPROBED_WITHOUT_FLOCK).then(|| {
                    fchmod(&lock, Mode::S_IRWXU).ok();
                    (LockStamp::from_stat(&stat), None)
                }),
            })
        }
        // Without descriptors it is a lock all the same.
        Err(_) if before.is_within(UNPROBED_FOR) => confirm_without_flock(dir, name, before),
        Err(_) => Ok(None),
    }
}

/// Nobody has reached for it yet, or somebody may have: then it is ours where it has the mark and is at its place.
fn is_still_held(
    dir: &DirHandle,
    name: &str,
    stat: &FileStat,
    grip: &HolderFlock,
    before: CreationTime,
) -> bool {
    if has_sticky_bit(stat) && !before.is_within(UNPROBED_FOR) {
        return has_stamp(dir.stat(name).ok().flatten(), LockStamp::from_stat(stat));
    }
    let is_ours = before.is_within(if MKDIR_SETS_STICKY { UNPROBED_FOR } else { UNPROBED_WITHOUT_FLOCK });
    if is_ours && !has_sticky_bit(stat) {
        // Only what is gripped may have it. Some file systems have none such; there the ten seconds count.
        fchmod(grip.file(), sticky_mode()).ok();
    }
    is_ours
}

/// Only what is gripped may have the mark.
fn confirm_without_flock(
    dir: &DirHandle,
    name: &str,
    before: CreationTime,
) -> Result<Option<(LockStamp, Option<HolderFlock>)>, Error> {
    match fchmodat(dir, name, Mode::S_IRWXU, FchmodatFlags::FollowSymlink) {
        Err(Errno::ENOENT) => return Ok(None),
        changed => changed.map_err(Error::from_errno("lock", &dir.join(name)))?,
    }
    let stamp = dir.stat(name)?.map(|stat| LockStamp::from_stat(&stat));
    Ok(stamp.filter(|_| before.is_within(PROBE_DELAY)).map(|stamp| (stamp, None)))
}

/// True if one of ours made it, and has or had a grip on it, or was about to.
pub(super) fn has_sticky_bit(stat: &FileStat) -> bool {
    Mode::from_bits_truncate(stat.st_mode).contains(Mode::S_ISVTX) && stat.st_uid == geteuid().as_raw()
}

/// The same of one that is gripped now.
pub(super) fn is_still_sticky(grip: &HolderFlock) -> bool {
    fstat(grip.file()).is_ok_and(|stat| has_sticky_bit(&stat))
}

/// Reaches for the grip on the lock that `stamp` was seen of.
pub(super) fn probe_holder(dir: &DirHandle, name: &str, stamp: LockStamp) -> HolderProbe {
    let Some(lock) = dir.open_dir(name).ok().flatten() else { return HolderProbe::Unknown };
    match Flock::try_lock(into_file(lock)) {
        // Whoever had the grip before may have taken it away, and another one may be there.
        Ok(grip)
            if has_stamp(fstat(grip.file()).ok(), stamp)
                && has_stamp(dir.stat(name).ok().flatten(), stamp) =>
        {
            HolderProbe::NotAlive(grip)
        }
        Err((_, TryLockError::WouldBlock)) => HolderProbe::Alive,
        _ => HolderProbe::Unknown,
    }
}

fn has_stamp(stat: Option<FileStat>, stamp: LockStamp) -> bool {
    stat.is_some_and(|stat| LockStamp::from_stat(&stat) == stamp)
}

fn into_file(directory: DirHandle) -> File {
    File::from(OwnedFd::from(directory))
}
