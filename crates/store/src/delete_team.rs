//! Deletes a team's files. Only files whose names teamd knows are deleted. If the team's
//! directories contain any other file, nothing is deleted. A person can then move that file away
//! and delete the team again. After a crash, a second call finishes the deletion.

use crate::directory_handle::{DirHandle, file_type};
use crate::error::Error;
use crate::remove_stale_files::{is_lock, is_temp_file};
use crate::team_file_names::{
    CONFIG_FILE, HIGH_WATER_MARK_FILE, INBOXES_DIR, LOCK_FILE, is_inbox_file, task_of_file,
};
use crate::team_handle::Team;
use nix::sys::stat::SFlag;
use std::path::PathBuf;

impl Team {
    /// Deletes the team with its inboxes and tasks.
    ///
    /// If a directory of the team contains an unknown file, the call fails before it deletes
    /// anything.
    ///
    /// # Errors
    /// As [`Team::check_deletable`].
    pub fn delete(&self) -> Result<(), Error> {
        self.check_deletable()?;
        for _ in 1..MAX_ATTEMPTS {
            match self.delete_files() {
                // A sender or a link to another host has written a file meanwhile.
                Err(error) if error.is_directory_not_empty() && self.has_its_name() => {}
                result => return result,
            }
        }
        self.delete_files()
    }

    fn delete_files(&self) -> Result<(), Error> {
        let mut unknown_files = Vec::new();
        self.for_each_dir(|dir, is_known_name| delete_known(dir, is_known_name, &mut unknown_files))?;
        self.check_no_unknown_files(unknown_files)?;
        self.all_tasks_dir().rmdir(self.name().as_str())?;
        self.dir().rmdir(INBOXES_DIR)?;
        self.forget()?;
        self.dir().unlink(CONFIG_FILE)?;
        self.all_teams_dir().rmdir(self.name().as_str())
    }

    /// Checks that the team's directories contain only known files. Changes nothing.
    ///
    /// # Errors
    /// [`Error::UnknownFiles`], with the paths of the unknown files; `ReadOnly` for a session team
    /// of Claude Code; `Io`.
    pub fn check_deletable(&self) -> Result<(), Error> {
        self.check_writable()?;
        let mut unknown_files = Vec::new();
        self.for_each_dir(|dir, is_known_name| {
            for name in dir.file_names()? {
                let kind = dir.stat(&name)?.map(|stat| file_type(&stat));
                let is_known_file = kind
                    .is_none_or(|kind| is_lock_dir(kind, &name) || is_deletable(kind, &name, is_known_name));
                unknown_files.extend((!is_known_file).then(|| dir.join(&name)));
            }
            Ok(())
        })?;
        self.check_no_unknown_files(unknown_files)
    }

    /// Calls `action` for each of the team's directories, with a filter for the names of the known
    /// files in it. The directories are opened again at each attempt to delete them, because
    /// another program may have replaced them.
    fn for_each_dir(
        &self,
        mut action: impl FnMut(&DirHandle, NameFilter) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(inboxes) = self.dir().open_own_dir(INBOXES_DIR)? {
            action(&inboxes, is_inbox_file)?;
        }
        if !self.has_its_name() {
            // The tasks at the path may be those of a later team.
            self.tasks_dir()?.map_or(Ok(()), |tasks| action(tasks, is_task_file))?;
        } else if let Some(tasks) = self.all_tasks_dir().open_own_dir(self.name().as_str())? {
            action(&tasks, is_task_file)?;
        }
        action(self.dir(), matches_nothing)
    }

    /// Whether the directory of this name is that of the team.
    fn has_its_name(&self) -> bool {
        self.all_teams_dir().has_same_dir(self.name().as_str(), self.dir())
    }

    fn check_no_unknown_files(&self, mut unknown_files: Vec<PathBuf>) -> Result<(), Error> {
        let expected = [self.dir().join(CONFIG_FILE), self.dir().join(INBOXES_DIR)];
        unknown_files.retain(|path| !expected.contains(path));
        if unknown_files.is_empty() {
            return Ok(());
        }
        Err(Error::UnknownFiles { team: self.name().clone(), paths: unknown_files })
    }
}

/// Maximum number of attempts to delete the files. An attempt fails if another program writes a
/// file meanwhile. An attempt takes only milliseconds, so few attempts fail.
const MAX_ATTEMPTS: usize = 1_000;

type NameFilter = fn(&str) -> bool;

/// Deletes those files in `dir` whose names `is_known_name` accepts, and all locks and temporary
/// files. Adds the paths of all other files to `unknown_files`.
fn delete_known(
    dir: &DirHandle,
    is_known_name: NameFilter,
    unknown_files: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    for name in dir.file_names()? {
        let Some(stat) = dir.stat(&name)? else { continue };
        let kind = file_type(&stat);
        if is_lock_dir(kind, &name) && dir.rmdir(&name).is_ok() {
            continue;
        }
        if is_deletable(kind, &name, is_known_name) {
            dir.unlink(&name)?;
        } else {
            unknown_files.push(dir.join(&name));
        }
    }
    Ok(())
}

fn is_lock_dir(kind: SFlag, name: &str) -> bool {
    kind == SFlag::S_IFDIR && is_lock(name)
}

fn is_deletable(kind: SFlag, name: &str, is_known_name: NameFilter) -> bool {
    kind == SFlag::S_IFREG && (is_known_name(name) || is_temp_file(name))
}

/// A name filter that accepts no name. It is used for the team's own directory, whose entries are
/// deleted separately, after all other files.
fn matches_nothing(_: &str) -> bool {
    false
}

fn is_task_file(name: &str) -> bool {
    task_of_file(name).is_some() || [LOCK_FILE, HIGH_WATER_MARK_FILE].contains(&name)
}
