//! Detects at once that the holder of a lock is dead, if the holder was one of teamd's programs.
//!
//! A program of teamd creates the lock directory with the sticky bit, which no other program sets.
//! Then the program takes the kernel's file lock (flock) on the directory. The kernel releases the
//! flock when the process ends for any reason. So a sticky lock whose flock stays free belongs to a
//! dead process. A process id would be no proof, because containers and reboots reuse process ids.
//!
//! If the process is stopped (SIGSTOP) between `mkdir` and the flock, other processes take it for
//! dead and may take over the lock. So the creator of a lock checks by [`confirm`] that the lock
//! still belongs to it.
//!
//! Nothing is stored in the directory, and there is no second file to clean up. If the file system
//! has no flock on directories, a lock becomes stale only by its age, after ten seconds.

use super::lock_inode_and_age::LockStamp;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::flock::Flock;
use nix::errno::Errno;
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, fchmod, fchmodat, fstat};
use nix::unistd::geteuid;
use std::fs::{File, TryLockError};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant, SystemTime};

/// The flock on a lock directory. Dropping it releases the flock.
pub(super) type HolderFlock = Flock;

/// The result of [`probe_holder`].
#[derive(Debug)]
pub(super) enum HolderProbe {
    /// No live program of teamd holds the lock or is removing it. Contains the flock.
    NotAlive(HolderFlock),
    /// A live program of teamd has the flock.
    Alive,
    /// The lock was replaced, or the file system does not support flock on directories.
    Unknown,
}

/// A process that waits for a sticky lock tries to take its flock, to find out whether the holder
/// is alive. Before that, the process watches the lock for this time, so that the creator of a new
/// lock can take the flock first.
pub(super) const PROBE_DELAY: Duration = Duration::from_millis(50);
/// Within this time after `mkdir`, the creator of a lock certainly still owns the lock, because
/// other processes may take over the lock only after [`PROBE_DELAY`]. The value is only half of
/// [`PROBE_DELAY`], because clocks advance in ticks.
const UNPROBED_FOR: Duration = Duration::from_millis(25);
/// On some systems a new lock has no flock or no sticky bit. Other processes take over such a lock
/// when it is older than [`LOCK_STALE_AFTER`], ten seconds. So if its creator was stopped after
/// `mkdir` for longer than this timeout, the creator gives up the lock.
///
/// The timeout is only half of [`LOCK_STALE_AFTER`], because the lock's timestamp may come from the
/// clock of a file server.
///
/// [`LOCK_STALE_AFTER`]: super::lock_inode_and_age::LOCK_STALE_AFTER
const CONFIRM_TIMEOUT_WITHOUT_PROBE: Duration = Duration::from_secs(5);
/// A time shortly before a lock directory was created, by two clocks. Both are needed: the wall
/// clock can be set, and the monotonic clock stops while the machine is suspended.
#[derive(Debug, Clone, Copy)]
pub(super) struct CreationTime(Instant, SystemTime);

impl CreationTime {
    pub(super) fn now() -> CreationTime {
        CreationTime(Instant::now(), SystemTime::now())
    }

    /// A time in the past. `monotonic` and `wall` are the time since then by the two clocks.
    #[cfg(test)]
    pub(super) fn with_age(monotonic: Duration, wall: Duration) -> CreationTime {
        CreationTime(Instant::now().checked_sub(monotonic).unwrap(), SystemTime::now() - wall)
    }

    fn is_within(self, limit: Duration) -> bool {
        self.0.elapsed() < limit && self.1.elapsed().map_or(true, |age| age < limit)
    }
}

/// The permission bits of a new lock. The sticky bit marks the lock as created by teamd, and other
/// users can't enter the directory.
pub(super) fn sticky_mode() -> Mode {
    Mode::S_ISVTX | Mode::S_IRWXU
}

/// Confirms that this process still owns the lock `name`, which the process has just created. Takes
/// the flock if possible.
///
/// `None` if the lock is gone, or if another process may have taken it over while this process was
/// stopped.
pub(super) fn confirm(
    dir: &DirHandle,
    name: &str,
    creation_time: CreationTime,
) -> Result<Option<(LockStamp, Option<HolderFlock>)>, Error> {
    match dir.open_dir(name) {
        Ok(None) => Ok(None),
        Ok(Some(lock)) => {
            let stat = fstat(&lock).map_err(Error::from_errno("look at", &dir.join(name)))?;
            Ok(match Flock::try_lock(into_file(lock)) {
                Ok(flock) => is_still_held(dir, name, &stat, &flock, creation_time)
                    .then(|| (LockStamp::from_stat(&stat), Some(flock))),
                // Another process assumed that this process was dead, and has the flock.
                Err((_, TryLockError::WouldBlock)) => None,
                // The file system has no flock on directories. Without a flock, a sticky lock would
                // look like the lock of a dead process, so the sticky bit is removed.
                Err((lock, TryLockError::Error(_))) => {
                    creation_time.is_within(CONFIRM_TIMEOUT_WITHOUT_PROBE).then(|| {
                        fchmod(&lock, Mode::S_IRWXU).ok();
                        (LockStamp::from_stat(&stat), None)
                    })
                }
            })
        }
        // If this process can't open the directory, for example because it has no free descriptor,
        // it keeps the lock without the flock. This is safe shortly after `mkdir`, because no other
        // process can have taken over the lock yet.
        Err(_) if creation_time.is_within(UNPROBED_FOR) => confirm_without_flock(dir, name, creation_time),
        Err(_) => Ok(None),
    }
}

/// Whether this process still owns a new lock, whose flock it has just taken. In the first 25 ms
/// after `mkdir`, the process always owns the lock, because no other process takes over a lock so
/// early. Later, the process still owns a lock with the sticky bit if the lock is at its path.
///
/// A lock without the sticky bit counts as lost after the 25 ms. On systems where `mkdir` can't set
/// the bit, such a lock counts as lost only after five seconds.
fn is_still_held(
    dir: &DirHandle,
    name: &str,
    stat: &FileStat,
    flock: &HolderFlock,
    creation_time: CreationTime,
) -> bool {
    if has_sticky_bit(stat) && !creation_time.is_within(UNPROBED_FOR) {
        return has_stamp(dir.stat(name).ok().flatten(), LockStamp::from_stat(stat));
    }
    let is_ours = creation_time.is_within(if platform::MKDIR_SETS_STICKY_BIT {
        UNPROBED_FOR
    } else {
        CONFIRM_TIMEOUT_WITHOUT_PROBE
    });
    if is_ours && !has_sticky_bit(stat) {
        // This process holds the flock, so it may set the sticky bit. An error does no harm: a lock
        // without the sticky bit becomes stale by its age, after ten seconds.
        fchmod(flock.file(), sticky_mode()).ok();
    }
    is_ours
}

/// Confirms a new lock whose directory can't be opened, so that its flock can't be taken. Removes
/// the sticky bit, because only a lock with a held flock may have it.
fn confirm_without_flock(
    dir: &DirHandle,
    name: &str,
    creation_time: CreationTime,
) -> Result<Option<(LockStamp, Option<HolderFlock>)>, Error> {
    match fchmodat(dir, name, Mode::S_IRWXU, FchmodatFlags::FollowSymlink) {
        Err(Errno::ENOENT) => return Ok(None),
        result => result.map_err(Error::from_errno("lock", &dir.join(name)))?,
    }
    let stamp = dir.stat(name)?.map(|stat| LockStamp::from_stat(&stat));
    Ok(stamp.filter(|_| creation_time.is_within(PROBE_DELAY)).map(|stamp| (stamp, None)))
}

/// Whether one of this user's teamd programs created the lock. Such a program takes the lock's
/// flock right after the creation.
pub(super) fn has_sticky_bit(stat: &FileStat) -> bool {
    Mode::from_bits_truncate(stat.st_mode).contains(Mode::S_ISVTX) && stat.st_uid == geteuid().as_raw()
}

/// Whether a lock with a held flock still has the sticky bit.
pub(super) fn is_still_sticky(flock: &HolderFlock) -> bool {
    fstat(flock.file()).is_ok_and(|stat| has_sticky_bit(&stat))
}

/// Tries to take the flock of a lock that had `stamp` at the last check.
pub(super) fn probe_holder(dir: &DirHandle, name: &str, stamp: LockStamp) -> HolderProbe {
    let Some(lock) = dir.open_dir(name).ok().flatten() else { return HolderProbe::Unknown };
    match Flock::try_lock(into_file(lock)) {
        // The previous holder may have removed the lock, and another lock may be at its place.
        Ok(flock)
            if has_stamp(fstat(flock.file()).ok(), stamp)
                && has_stamp(dir.stat(name).ok().flatten(), stamp) =>
        {
            HolderProbe::NotAlive(flock)
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
