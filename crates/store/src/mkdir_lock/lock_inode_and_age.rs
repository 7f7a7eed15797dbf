//! The stamp of a lock, which distinguishes the lock from later locks of the same name. Also the
//! age at which a lock becomes stale. Any program may take over a stale lock.

use nix::sys::stat::FileStat;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A lock of this age is stale. The age is measured by the wall clock, or by the time for which the
/// lock was watched.
pub(super) const LOCK_STALE_AFTER: Duration = Duration::from_secs(10);

/// How long a lock that looks stale by the wall clock is watched before it counts as stale. The
/// watch is needed because the clock may have been set.
pub(super) const STALE_CONFIRMATION: Duration = Duration::from_millis(500);

/// Inode and modification time of a lock directory. Together they distinguish a lock from the next
/// lock of the same name.
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
        let changed_at = Duration::from_secs(self.seconds.max(0) as u64);
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(changed_at)
    }

    pub(super) fn is_stale(&self) -> bool {
        self.age() > LOCK_STALE_AFTER
    }
}
