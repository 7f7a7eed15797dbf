//! The version of a file: the fields of `stat` that differ after a change.

use crate::directory_handle::DirHandle;
use crate::error::Error;
use nix::sys::stat::FileStat;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two changes of a file that are less than this time apart may get the same timestamp. The clocks
/// of file systems tick every 1 to 10 milliseconds; the rest of the time is a margin.
pub(super) const TIMESTAMP_RESOLUTION: Duration = Duration::from_millis(50);

/// The fields of `stat` that distinguish two versions of a file. They include the change time
/// (`ctime`), because no program can set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileVersion {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) size: i64,
    pub(super) modified: (i64, i64),
    pub(super) changed: (i64, i64),
}

impl FileVersion {
    #[allow(clippy::unnecessary_cast, reason = "the widths differ between systems")]
    pub(super) fn from_stat(stat: &FileStat) -> FileVersion {
        FileVersion {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// The version of the file `name`. `None` if there is no such file.
    pub(crate) fn stat_file(dir: &DirHandle, name: &str) -> Result<Option<FileVersion>, Error> {
        Ok(dir.stat(name)?.map(|stat| FileVersion::from_stat(&stat)))
    }

    /// Whether the file's change time has a fraction of a second. If not, the file system may store
    /// only whole seconds. Two changes within one second would then look the same.
    pub(crate) fn has_subsecond_stamp(&self) -> bool {
        self.changed.1 != 0
    }

    pub(super) fn is_same_file(&self, other: &FileVersion) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Whether this version differs from `other` at most in its change time, which a rename sets.
    pub(super) fn is_same_after_rename(&self, other: &FileVersion) -> bool {
        FileVersion { changed: other.changed, ..*self } == *other
    }

    pub(super) fn size(&self) -> u64 {
        self.size.max(0) as u64
    }

    /// Whether a change in place right after `now` could leave the same timestamps.
    pub(super) fn is_recently_changed(&self, now: SystemTime) -> bool {
        self.changed_at() + TIMESTAMP_RESOLUTION > now.duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    /// The time since the last change. Zero if the file's timestamp is later than the clock.
    pub(super) fn age(&self) -> Duration {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(self.changed_at())
    }

    pub(super) fn changed_at(&self) -> Duration {
        let (seconds, nanoseconds) = self.changed;
        Duration::new(seconds.max(0) as u64, nanoseconds.clamp(0, 999_999_999) as u32)
    }
}
