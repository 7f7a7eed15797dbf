//! Watches a held lock until it is released or stale.

use super::holder_liveness::{
    HolderFlock, HolderProbe, PROBE_DELAY, has_sticky_bit, is_still_sticky, probe_holder,
};
use super::lock_inode_and_age::{LOCK_STALE_AFTER, LockStamp, STALE_CONFIRMATION};
use crate::directory_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::sys::stat::SFlag;
use std::time::Instant;

/// The result of [`StaleWatch::observe`].
pub(super) enum LockObservation {
    Released,
    Held,
    Stale,
}

/// Remembers since when a lock has not changed, by the monotonic clock.
pub(super) struct StaleWatch {
    pub(super) last_seen: Option<(LockStamp, Instant)>,
    is_no_directory: bool,
    /// The flock of a stale lock. It ensures that only one of teamd's programs removes the lock.
    holder_flock: Option<HolderFlock>,
}

impl StaleWatch {
    pub(super) fn new() -> StaleWatch {
        StaleWatch { last_seen: None, is_no_directory: false, holder_flock: None }
    }

    /// A watch that has just seen the lock with this stamp.
    #[cfg(test)]
    pub(super) fn with_last_seen(stamp: LockStamp) -> StaleWatch {
        StaleWatch { last_seen: Some((stamp, Instant::now())), ..StaleWatch::new() }
    }

    /// Checks the lock once.
    pub(super) fn observe(&mut self, dir: &DirHandle, name: &str) -> Result<LockObservation, Error> {
        self.holder_flock = None;
        let Some(stat) = dir.stat(name)? else { return Ok(LockObservation::Released) };
        self.is_no_directory = file_type(&stat) != SFlag::S_IFDIR;
        let stamp = LockStamp::from_stat(&stat);
        let first_seen = match self.last_seen {
            Some((last_stamp, first_seen)) if last_stamp == stamp => first_seen,
            _ => Instant::now(),
        };
        self.last_seen = Some((stamp, first_seen));
        let watched = first_seen.elapsed();
        let stale = watched >= LOCK_STALE_AFTER || (stamp.is_stale() && watched >= STALE_CONFIRMATION);
        let is_sticky = has_sticky_bit(&stat);
        // If the file system stores timestamps in whole seconds, an earlier lock of the same name
        // may have had the same stamp. The two locks would look like one, so the lock is watched
        // for longer.
        let probe_delay = if stamp.nanoseconds == 0 { STALE_CONFIRMATION * 4 } else { PROBE_DELAY };
        if self.is_no_directory || !(stale || is_sticky && watched >= probe_delay) {
            return Ok(LockObservation::Held);
        }
        Ok(match probe_holder(dir, name, stamp) {
            // If the sticky bit is gone since the call of `stat` above, the holder is alive: it
            // could not take the flock, and has removed the bit to keep the lock without it.
            HolderProbe::NotAlive(flock) if !stale && !is_still_sticky(&flock) => LockObservation::Held,
            HolderProbe::NotAlive(flock) => {
                self.holder_flock = Some(flock);
                LockObservation::Stale
            }
            // The lock is old, but a live process has its flock. If the lock has the sticky bit,
            // this process is usually the holder, which was stopped for too long: the lock is
            // stale. Otherwise the process is usually about to remove the lock, so the lock is
            // stale only after it was watched for ten seconds.
            HolderProbe::Alive if stale && (is_sticky || watched >= LOCK_STALE_AFTER) => {
                LockObservation::Stale
            }
            HolderProbe::Unknown if stale => LockObservation::Stale,
            HolderProbe::Alive | HolderProbe::Unknown => LockObservation::Held,
        })
    }

    /// Why the lock can't be taken, as part of an error message.
    pub(super) fn reason(&self) -> &'static str {
        if self.is_no_directory {
            "it is no directory, so no lock of the usual kind"
        } else {
            "another program holds it"
        }
    }
}
