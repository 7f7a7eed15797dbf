//! Removing a team's files: by name, each known to us, from open directories, and nothing else. What is not
//! known is kept, and the config with it, so that the team can be deleted again when it has been moved away.
//! After a crash half way the same call finishes.

use crate::dir_handle::{DirHandle, file_type};
use crate::error::Error;
use crate::layout::{CONFIG_FILE, HIGH_WATER_MARK_FILE, INBOXES_DIR, LOCK_FILE, is_inbox_file, task_of_file};
use crate::stale_files::{is_lock, is_temp_file};
use crate::team::Team;
use nix::sys::stat::SFlag;
use std::path::PathBuf;

impl Team {
    /// Removes the team with inboxes and tasks.
    ///
    /// No file or directory that is not one of the protocol's is touched; where there are any, nothing else is either.
    ///
    /// # Errors
    /// As `Team::may_delete`.
    pub fn delete(&self) -> Result<(), Error> {
        self.check_deletable()?;
        let mut leftovers = Vec::new();
        for (dir, known) in self.team_dirs()? {
            delete_known(dir, known, &mut leftovers)?;
        }
        self.check_no_unknown_files(leftovers)?;
        self.all_tasks_dir().rmdir(self.name().as_str())?;
        self.dir().rmdir(INBOXES_DIR)?;
        self.forget()?;
        self.dir().unlink(CONFIG_FILE)?;
        self.all_teams_dir().rmdir(self.name().as_str())
    }

    /// Whether there is nothing but what goes with it. Nothing is touched.
    ///
    /// # Errors
    /// `JsonError::UnknownFiles` names what is not one of the protocol's; `ReadOnly`, `Io`.
    pub fn check_deletable(&self) -> Result<(), Error> {
        self.check_writable()?;
        let mut leftovers = Vec::new();
        for (dir, known) in self.team_dirs()? {
            for name in dir.file_names()? {
                let kind = dir.stat(&name)?.map(|stat| file_type(&stat));
                let goes =
                    kind.is_none_or(|kind| is_lock_dir(kind, &name) || is_deletable(kind, &name, known));
                leftovers.extend((!goes).then(|| dir.join(&name)));
            }
        }
        self.check_no_unknown_files(leftovers)
    }

    /// Its directories, and what is known in each.
    fn team_dirs(&self) -> Result<impl Iterator<Item = (&DirHandle, NameFilter)>, Error> {
        let parts = [
            self.inboxes_dir()?.map(|dir| (dir, is_inbox_file as NameFilter)),
            self.tasks_dir()?.map(|dir| (dir, is_task_file as NameFilter)),
            Some((self.dir(), matches_nothing as NameFilter)),
        ];
        Ok(parts.into_iter().flatten())
    }

    fn check_no_unknown_files(&self, mut leftovers: Vec<PathBuf>) -> Result<(), Error> {
        let expected = [self.dir().join(CONFIG_FILE), self.dir().join(INBOXES_DIR)];
        leftovers.retain(|path| !expected.contains(path));
        if leftovers.is_empty() {
            return Ok(());
        }
        Err(Error::UnknownFiles { team: self.name().clone(), paths: leftovers })
    }
}

type NameFilter = fn(&str) -> bool;

/// Removes what `known` names from `dir`, with locks and files on their way; the rest goes to `leftovers`.
fn delete_known(dir: &DirHandle, known: NameFilter, leftovers: &mut Vec<PathBuf>) -> Result<(), Error> {
    for name in dir.file_names()? {
        let Some(stat) = dir.stat(&name)? else { continue };
        let kind = file_type(&stat);
        if is_lock_dir(kind, &name) && dir.rmdir(&name).is_ok() {
            continue;
        }
        if is_deletable(kind, &name, known) {
            dir.unlink(&name)?;
        } else {
            leftovers.push(dir.join(&name));
        }
    }
    Ok(())
}

fn is_lock_dir(kind: SFlag, name: &str) -> bool {
    kind == SFlag::S_IFDIR && is_lock(name)
}

fn is_deletable(kind: SFlag, name: &str, known: NameFilter) -> bool {
    kind == SFlag::S_IFREG && (known(name) || is_temp_file(name))
}

/// In the team's own directory its config and its inboxes, which go last.
fn matches_nothing(_: &str) -> bool {
    false
}

fn is_task_file(name: &str) -> bool {
    task_of_file(name).is_some() || [LOCK_FILE, HIGH_WATER_MARK_FILE].contains(&name)
}
