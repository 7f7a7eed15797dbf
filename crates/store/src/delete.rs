//! Removing a team's files: by name, each known to us, from open directories, and nothing else. What is not
//! known is kept, and the config with it, so that the team can be deleted again when it has been moved away.
//! After a crash half way the same call finishes.

use crate::directory::{Directory, file_type};
use crate::error::Error;
use crate::leftover::{is_lock, is_temporary};
use crate::team::{CONFIG, INBOXES, Team};
use nix::sys::stat::SFlag;
use protocol::id::TaskId;
use std::path::PathBuf;

impl Team {
    /// Removes the team with inboxes and tasks.
    ///
    /// No file or directory that is not one of the protocol's is touched; where there are any, nothing else is either.
    ///
    /// # Errors
    /// As [`Team::may_delete`].
    pub fn delete(&self) -> Result<(), Error> {
        self.may_delete()?;
        let mut leftovers = Vec::new();
        for (dir, known) in self.parts()? {
            sweep(dir, known, &mut leftovers)?;
        }
        self.refuse(leftovers)?;
        self.all_tasks().rmdir(self.name().as_str())?;
        self.dir().rmdir(INBOXES)?;
        self.forget()?;
        self.dir().unlink(CONFIG)?;
        self.all_teams().rmdir(self.name().as_str())
    }

    /// Whether there is nothing but what goes with it. Nothing is touched.
    ///
    /// # Errors
    /// [`Error::Leftovers`] names what is not one of the protocol's; `ReadOnly`, `Io`.
    pub fn may_delete(&self) -> Result<(), Error> {
        self.writable()?;
        let mut leftovers = Vec::new();
        for (dir, known) in self.parts()? {
            for name in dir.names()? {
                let kind = dir.stat(&name)?.map(|stat| file_type(&stat));
                let goes = kind.is_none_or(|kind| is_lock_dir(kind, &name) || is_known(kind, &name, known));
                leftovers.extend((!goes).then(|| dir.join(&name)));
            }
        }
        self.refuse(leftovers)
    }

    /// Its directories, and what is known in each.
    fn parts(&self) -> Result<impl Iterator<Item = (&Directory, Known)>, Error> {
        let parts = [
            self.inboxes()?.map(|dir| (dir, is_inbox as Known)),
            self.task_dir()?.map(|dir| (dir, is_task as Known)),
            Some((self.dir(), is_nothing as Known)),
        ];
        Ok(parts.into_iter().flatten())
    }

    fn refuse(&self, mut leftovers: Vec<PathBuf>) -> Result<(), Error> {
        let expected = [self.dir().join(CONFIG), self.dir().join(INBOXES)];
        leftovers.retain(|path| !expected.contains(path));
        if leftovers.is_empty() {
            return Ok(());
        }
        Err(Error::Leftovers { team: self.name().clone(), leftovers })
    }
}

type Known = fn(&str) -> bool;

/// Removes what `known` names from `dir`, with locks and files on their way; the rest goes to `leftovers`.
fn sweep(dir: &Directory, known: Known, leftovers: &mut Vec<PathBuf>) -> Result<(), Error> {
    for name in dir.names()? {
        let Some(stat) = dir.stat(&name)? else { continue };
        let kind = file_type(&stat);
        if is_lock_dir(kind, &name) && dir.rmdir(&name).is_ok() {
            continue;
        }
        if is_known(kind, &name, known) {
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

fn is_known(kind: SFlag, name: &str, known: Known) -> bool {
    kind == SFlag::S_IFREG && (known(name) || is_temporary(name))
}

/// In the team's own directory its config and its inboxes, which go last.
fn is_nothing(_: &str) -> bool {
    false
}

fn is_inbox(name: &str) -> bool {
    name.ends_with(".json") && !name.starts_with('.')
}

fn is_task(name: &str) -> bool {
    let task = name.strip_suffix(".json").is_some_and(|id| TaskId::parse(id).is_ok());
    task || name == ".lock" || name == ".highwatermark"
}
