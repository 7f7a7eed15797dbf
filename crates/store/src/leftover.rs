//! What writers that were killed leave beside the files: files on their way, and locks, held or moved aside.
//! They disturb nobody; after an hour they are nobody's, and go. A lock in its place has the rule of `lock`:
//! after ten seconds whoever wants it next may take it, or [`Team::release_stale`] when somebody cleans up.

use crate::directory::{Directory, file_type};
use crate::error::Error;
use crate::file::{MARK, TWIN};
use crate::lock;
use crate::team::{CONFIG, Team};
use nix::sys::stat::SFlag;
use protocol::id::TaskId;
use std::path::PathBuf;
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

impl Team {
    /// Removes the locks that killed holders left, of config, inboxes, task list and tasks, and tells which.
    ///
    /// Only empty directories go that are older than ten seconds and stay unchanged for half a second more,
    /// which is waited for once if there is any. Fresh locks, files, links and full directories stay.
    ///
    /// # Errors
    /// `ReadOnly`; `Io` and `Odd`, and other locks may be gone then.
    pub fn release_stale(&self) -> Result<Vec<PathBuf>, Error> {
        self.writable()?;
        let mut locks = vec![(self.dir(), format!("{CONFIG}.lock"))];
        let places = [(self.inboxes()?, is_inbox as fn(&str) -> bool), (self.task_dir()?, is_task)];
        for (dir, is_target) in places {
            let Some(dir) = dir else { continue };
            let is_lock = |name: &String| name.strip_suffix(".lock").is_some_and(is_target);
            locks.extend(dir.names()?.into_iter().filter(is_lock).map(|name| (dir, name)));
        }
        lock::release_stale(locks)
    }
}

fn is_inbox(target: &str) -> bool {
    target.ends_with(".json") && !target.starts_with('.')
}

/// A task, or the file that stands for the whole list.
fn is_task(target: &str) -> bool {
    target == ".lock" || target.strip_suffix(".json").is_some_and(|id| TaskId::parse(id).is_ok())
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

/// Ours are `.NAME.tmp.ID` and the twins of long inboxes, `.NAME.twin`; Claude Code's `NAME.tmp.ID`.
pub(crate) fn is_temporary(name: &str) -> bool {
    let id = name.split_once(MARK).map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        || name.starts_with('.') && name.ends_with(TWIN)
}
