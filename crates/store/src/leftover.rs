//! What writers that were killed leave beside the files: files on their way, and locks, held or moved aside.
//! They disturb nobody; after an hour they are nobody's, and go.

use crate::directory::{Directory, file_type};
use crate::error::Error;
use crate::file::MARK;
use crate::team::Team;
use nix::sys::stat::SFlag;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const OLD: Duration = Duration::from_secs(3600);

impl Team {
    /// Removes files on their way and moved locks that have not changed for an hour. A lock in its place is
    /// left to whoever wants it next.
    pub fn tidy(&self) -> Result<(), Error> {
        self.writable()?;
        let dirs = [Some(self.dir()), self.inboxes()?, self.task_dir()?];
        dirs.into_iter().flatten().try_for_each(tidy)
    }
}

impl Team {
    /// Removes what a killed daemon left of a config.json that it was writing. For the daemon alone, under its
    /// own lock: nobody else writes that file of ours through a temporary one of this name.
    ///
    /// # Errors
    /// `Io`, `ReadOnly`.
    pub fn tidy_config(&self) -> Result<(), Error> {
        self.writable()?;
        remove_halves(self.dir(), "config.json")
    }
}

/// Removes the temporary files of `name`, whatever their age.
pub(crate) fn remove_halves(dir: &Directory, name: &str) -> Result<(), Error> {
    let prefix = format!(".{name}.tmp.");
    dir.names()?.iter().filter(|found| found.starts_with(&prefix)).try_for_each(|found| dir.unlink(found))
}

fn tidy(dir: &Directory) -> Result<(), Error> {
    for name in dir.names()? {
        if !is_temporary(&name) && !is_moved(&name) {
            continue;
        }
        let Some(stat) = dir.stat(&name)? else { continue };
        let changed = UNIX_EPOCH + Duration::from_secs(stat.st_mtime.max(0).unsigned_abs());
        if SystemTime::now().duration_since(changed).unwrap_or_default() < OLD {
            continue;
        }
        match file_type(&stat) {
            SFlag::S_IFREG => dir.unlink(&name)?,
            SFlag::S_IFDIR if is_moved(&name) => dir.rmdir(&name)?,
            _ => {}
        }
    }
    Ok(())
}

/// A lock, in its place or moved aside by [`crate::lock`].
pub(crate) fn is_lock(name: &str) -> bool {
    name.ends_with(".lock") || is_moved(name)
}

fn is_moved(name: &str) -> bool {
    name.starts_with('.') && name.contains(".lock.stale.")
}

/// Ours are `.NAME.tmp.ID`, Claude Code's `NAME.tmp.ID`.
pub(crate) fn is_temporary(name: &str) -> bool {
    let id = name.split_once(MARK).map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit()))
}
