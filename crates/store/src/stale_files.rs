//! What writers that were killed leave beside the files: files on their way, and locks, held or moved aside.
//! They disturb nobody; after an hour they are nobody's, and go. A lock in its place has the rule of `lock`:
//! after ten seconds whoever wants it next may take it, or `Team::release_stale` when somebody cleans up.

use crate::dir_handle::{DirHandle, file_type};
use crate::error::Error;
use crate::file::{SHADOW_SUFFIX, TEMP_INFIX};
use crate::layout::{CONFIG_FILE, LOCK_FILE, is_inbox_file, task_of_file};
use crate::lock;
use crate::team::Team;
use nix::sys::stat::SFlag;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TEMP_ABANDONED_AFTER: Duration = Duration::from_secs(3600);

impl Team {
    /// Removes files on their way and moved locks that have not changed for an hour. A lock in its place is
    /// left to whoever wants it next.
    pub fn remove_abandoned(&self) -> Result<(), Error> {
        self.check_writable()?;
        let dirs = [Some(self.dir()), self.inboxes_dir()?, self.tasks_dir()?];
        dirs.into_iter().flatten().try_for_each(remove_abandoned)
    }
}

impl Team {
    /// Removes what a killed daemon left of a config.json that it was writing. For the daemon alone, under its
    /// own lock: nobody else writes that file of ours through a temporary one of this name.
    ///
    /// # Errors
    /// `Io`, `ReadOnly`.
    pub fn remove_config_temp_files(&self) -> Result<(), Error> {
        self.check_writable()?;
        remove_temp_files(self.dir(), CONFIG_FILE)
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
    pub fn remove_stale_locks(&self) -> Result<Vec<PathBuf>, Error> {
        self.check_writable()?;
        let mut locks = vec![(self.dir(), format!("{CONFIG_FILE}.lock"))];
        let places = [(self.inboxes_dir()?, is_inbox_file as fn(&str) -> bool), (self.tasks_dir()?, is_task)];
        for (dir, is_target) in places {
            let Some(dir) = dir else { continue };
            let is_lock = |name: &String| name.strip_suffix(".lock").is_some_and(is_target);
            locks.extend(dir.file_names()?.into_iter().filter(is_lock).map(|name| (dir, name)));
        }
        lock::remove_stale(locks)
    }
}

/// A task, or the file that stands for the whole list.
fn is_task(target: &str) -> bool {
    target == LOCK_FILE || task_of_file(target).is_some()
}

/// Removes the temporary files of `name`, whatever their age.
pub(crate) fn remove_temp_files(dir: &DirHandle, name: &str) -> Result<(), Error> {
    let prefix = format!(".{name}.tmp.");
    dir.file_names()?
        .iter()
        .filter(|found| found.starts_with(&prefix))
        .try_for_each(|found| dir.unlink(found))
}

fn remove_abandoned(dir: &DirHandle) -> Result<(), Error> {
    for name in dir.file_names()? {
        if !is_temp_file(&name) && !is_moved_lock(&name) {
            continue;
        }
        let Some(stat) = dir.stat(&name)? else { continue };
        let changed = UNIX_EPOCH + Duration::from_secs(stat.st_mtime.max(0).unsigned_abs());
        if SystemTime::now().duration_since(changed).unwrap_or_default() < TEMP_ABANDONED_AFTER {
            continue;
        }
        match file_type(&stat) {
            SFlag::S_IFREG => dir.unlink(&name)?,
            SFlag::S_IFDIR if is_moved_lock(&name) => dir.rmdir(&name)?,
            _ => {}
        }
    }
    Ok(())
}

/// A lock, in its place or moved aside by [`crate::lock`].
pub(crate) fn is_lock(name: &str) -> bool {
    name.ends_with(".lock") || is_moved_lock(name)
}

fn is_moved_lock(name: &str) -> bool {
    name.starts_with('.') && name.contains(".lock.stale.")
}

/// Ours are `.NAME.tmp.ID` and the twins of long inboxes, `.NAME.twin`; Claude Code's `NAME.tmp.ID`.
pub(crate) fn is_temp_file(name: &str) -> bool {
    let id = name.split_once(TEMP_INFIX).map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        || name.starts_with('.') && name.ends_with(SHADOW_SUFFIX)
}
