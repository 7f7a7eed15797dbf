//! Removes temporary files and locks that a killed program left beside the files of a team. Such
//! stale files do no harm.
//!
//! A program renames a stale lock before it removes the lock. If the program is killed between
//! these steps, the renamed lock stays; it is called a moved lock. Moved locks and temporary files
//! are deleted after an hour.
//!
//! A lock that was not moved is stale after ten seconds, by the rules of [`crate::mkdir_lock`]. The
//! next program that wants the lock then takes it over, or [`Team::remove_stale_locks`] removes it.

use crate::directory_handle::{DirHandle, file_type};
use crate::error::Error;
use crate::file_io::{SHADOW_SUFFIX, TEMP_INFIX};
use crate::mkdir_lock;
use crate::team_file_names::{CONFIG_FILE, LOCK_FILE, is_inbox_file, task_of_file};
use crate::team_handle::Team;
use nix::sys::stat::SFlag;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const TEMP_ABANDONED_AFTER: Duration = Duration::from_secs(3600);

impl Team {
    /// Deletes temporary files, and locks that a program had renamed in order to remove them, if
    /// they have not changed for an hour. All other locks stay, even stale ones: the next program
    /// that needs a stale lock takes it over.
    pub fn remove_abandoned(&self) -> Result<(), Error> {
        self.check_writable()?;
        let dirs = [Some(self.dir()), self.inboxes_dir()?, self.tasks_dir()?];
        dirs.into_iter().flatten().try_for_each(remove_abandoned)
    }
}

impl Team {
    /// Deletes the temporary files that a killed daemon left while it wrote `config.json`. Only the
    /// daemon calls this function, while it holds its lock on the root. So no other process is
    /// using such a file.
    ///
    /// # Errors
    /// `Io`, `ReadOnly`.
    pub fn remove_config_temp_files(&self) -> Result<(), Error> {
        self.check_writable()?;
        remove_temp_files(self.dir(), CONFIG_FILE)
    }
}

impl Team {
    /// Removes the stale locks of the config, the inboxes, the task list and the tasks. Returns
    /// their paths.
    ///
    /// A lock is stale if it is an empty directory, older than ten seconds, and unchanged during
    /// another half second. If some locks look stale, the call waits half a second once for all of
    /// them. Other locks, files, symbolic links and directories with content stay.
    ///
    /// # Errors
    /// `ReadOnly`, `Io`, `UnexpectedFileType`. Some locks may already be removed then.
    pub fn remove_stale_locks(&self) -> Result<Vec<PathBuf>, Error> {
        self.check_writable()?;
        let mut locks = vec![(self.dir(), format!("{CONFIG_FILE}.lock"))];
        let places = [(self.inboxes_dir()?, is_inbox_file as fn(&str) -> bool), (self.tasks_dir()?, is_task)];
        for (dir, is_target) in places {
            let Some(dir) = dir else { continue };
            let is_lock = |name: &String| name.strip_suffix(".lock").is_some_and(is_target);
            locks.extend(dir.file_names()?.into_iter().filter(is_lock).map(|name| (dir, name)));
        }
        mkdir_lock::remove_stale(locks)
    }
}

/// Whether the name is a task's file or the file whose lock covers the whole list.
fn is_task(target: &str) -> bool {
    target == LOCK_FILE || task_of_file(target).is_some()
}

/// Deletes the temporary files of `name`, of any age.
pub(crate) fn remove_temp_files(dir: &DirHandle, name: &str) -> Result<(), Error> {
    let prefix = format!(".{name}.tmp.");
    dir.file_names()?
        .iter()
        .filter(|file_name| file_name.starts_with(&prefix))
        .try_for_each(|file_name| dir.unlink(file_name))
}

fn remove_abandoned(dir: &DirHandle) -> Result<(), Error> {
    for name in dir.file_names()? {
        if !is_temp_file(&name) && !is_moved_lock(&name) {
            continue;
        }
        let Some(stat) = dir.stat(&name)? else { continue };
        let changed_at = UNIX_EPOCH + Duration::from_secs(stat.st_mtime.max(0).unsigned_abs());
        if SystemTime::now().duration_since(changed_at).unwrap_or_default() < TEMP_ABANDONED_AFTER {
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

/// Whether `name` is the name of a lock, or of a lock that [`crate::mkdir_lock`] has moved aside.
pub(crate) fn is_lock(name: &str) -> bool {
    name.ends_with(".lock") || is_moved_lock(name)
}

fn is_moved_lock(name: &str) -> bool {
    name.starts_with('.') && name.contains(".lock.stale.")
}

/// Whether `name` is the name of a temporary file. teamd uses `.NAME.tmp.ID` for temporary files,
/// and `.NAME.shadow` for the shadow copies of long inboxes. Claude Code uses `NAME.tmp.ID`.
pub(crate) fn is_temp_file(name: &str) -> bool {
    let id = name.split_once(TEMP_INFIX).map(|(_, id)| id);
    id.is_some_and(|id| id.len() >= 8 && id.bytes().all(|b| b.is_ascii_hexdigit()))
        || name.starts_with('.') && name.ends_with(SHADOW_SUFFIX)
}
