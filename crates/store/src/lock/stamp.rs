//! What tells one holding of a lock from the next, and when a lock counts as abandoned.

use nix::sys::stat::FileStat;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An abandoned lock is this old, by the wall clock or watched by us.
pub(super) const LOCK_STALE_AFTER: Duration = Duration::from_secs(10);

/// A lock that looks old is watched this long: the clock may have jumped.
pub(super) const STALE_CONFIRMATION: Duration = Duration::from_millis(500);

/// What tells one holding from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LockStamp {
    pub(super) inode: u64,
    pub(super) seconds: i64,
    pub(super) nanoseconds: i64,
}

impl LockStamp {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
    pub(super) fn from_stat(stat: &FileStat) -> LockStamp {
        let (seconds, nanoseconds) = (stat.st_mtime as i64, stat.st_mtime_nsec as i64);
        LockStamp { inode: stat.st_ino as u64, seconds, nanoseconds }
    }

    pub(super) fn age(&self) -> Duration {
        let changed = Duration::from_secs(self.seconds.max(0) as u64);
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(changed)
    }

    pub(super) fn is_stale(&self) -> bool {
        self.age() > LOCK_STALE_AFTER
    }
}
