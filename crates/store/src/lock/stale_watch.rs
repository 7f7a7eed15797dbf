//! Looking at a lock that somebody holds, until it is free or proves abandoned.

use super::holder_liveness::{
    HolderFlock, HolderProbe, PROBE_DELAY, has_sticky_bit, is_still_sticky, probe_holder,
};
use super::stamp::{LOCK_STALE_AFTER, LockStamp, STALE_CONFIRMATION};
use crate::dir_handle::{DirHandle, file_type};
use crate::error::Error;
use nix::sys::stat::SFlag;
use std::time::Instant;

/// What a look at a held lock says.
pub(super) enum LockObservation {
    Released,
    Held,
    Stale,
}

/// Remembers since when a lock has not changed, by a clock that does not jump.
pub(super) struct StaleWatch {
    pub(super) last_seen: Option<(LockStamp, Instant)>,
    is_no_directory: bool,
    /// On one that was found abandoned, so that of ours one alone takes it away.
    holder_flock: Option<HolderFlock>,
}

impl StaleWatch {
    pub(super) fn new() -> StaleWatch {
        StaleWatch { last_seen: None, is_no_directory: false, holder_flock: None }
    }

    #[cfg(test)]
    pub(super) fn with_last_seen(stamp: LockStamp) -> StaleWatch {
        StaleWatch { last_seen: Some((stamp, Instant::now())), ..StaleWatch::new() }
    }

    pub(super) fn observe(&mut self, dir: &DirHandle, name: &str) -> Result<LockObservation, Error> {
        self.holder_flock = None;
        let Some(stat) = dir.stat(name)? else { return Ok(LockObservation::Released) };
        self.is_no_directory = file_type(&stat) != SFlag::S_IFDIR;
        let stamp = LockStamp::from_stat(&stat);
        let since = match self.last_seen {
            Some((seen, since)) if seen == stamp => since,
            _ => Instant::now(),
        };
        self.last_seen = Some((stamp, since));
        let watched = since.elapsed();
        let stale = watched >= LOCK_STALE_AFTER || (stamp.is_stale() && watched >= STALE_CONFIRMATION);
        let marked = has_sticky_bit(&stat);
        // Where stamps are whole seconds the one before may have had the same.
        let window = if stamp.nanoseconds == 0 { STALE_CONFIRMATION * 4 } else { PROBE_DELAY };
        if self.is_no_directory || !(stale || marked && watched >= window) {
            return Ok(LockObservation::Held);
        }
        Ok(match probe_holder(dir, name, stamp) {
            // One that has no descriptors holds without a grip, and has taken the mark off.
            HolderProbe::NotAlive(grip) if !stale && !is_still_sticky(&grip) => LockObservation::Held,
            HolderProbe::NotAlive(grip) => {
                self.holder_flock = Some(grip);
                LockObservation::Stale
            }
            // One of ours that was stopped for so long. What is not marked another of ours is taking away, unless that
            // one was stopped, too, or before it could set the mark.
            HolderProbe::Alive if stale && (marked || watched >= LOCK_STALE_AFTER) => LockObservation::Stale,
            HolderProbe::Unknown if stale => LockObservation::Stale,
            HolderProbe::Alive | HolderProbe::Unknown => LockObservation::Held,
        })
    }

    pub(super) fn reason(&self) -> &'static str {
        if self.is_no_directory {
            "it is no directory, so no lock of the usual kind"
        } else {
            "another program holds it"
        }
    }
}
