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
    /// No file or directory that is not one of the protocol's is touched; they are named in
    /// [`Error::Leftovers`], and the team then still exists.
    pub fn delete(&self) -> Result<(), Error> {
        self.writable()?;
        let mut leftovers = Vec::new();
        if let Some(inboxes) = self.inboxes()? {
            sweep(inboxes, is_inbox, &mut leftovers)?;
        }
        if let Some(tasks) = self.task_dir()? {
            sweep(tasks, is_task, &mut leftovers)?;
        }
        sweep(self.dir(), |_| false, &mut leftovers)?;
        let expected = [self.dir().join(CONFIG), self.dir().join(INBOXES)];
        leftovers.retain(|path| !expected.contains(path));
        if !leftovers.is_empty() {
            return Err(Error::Leftovers { team: self.name().clone(), leftovers });
        }
        self.all_tasks().rmdir(self.name().as_str())?;
        self.dir().rmdir(INBOXES)?;
        self.answers().forget(self.name())?;
        self.dir().unlink(CONFIG)?;
        self.all_teams().rmdir(self.name().as_str())
    }
}

/// Removes what `known` names from `dir`, with locks and files on their way; the rest goes to `leftovers`.
fn sweep(dir: &Directory, known: fn(&str) -> bool, leftovers: &mut Vec<PathBuf>) -> Result<(), Error> {
    for name in dir.names()? {
        let Some(stat) = dir.stat(&name)? else { continue };
        let kind = file_type(&stat);
        if kind == SFlag::S_IFDIR && is_lock(&name) && dir.rmdir(&name).is_ok() {
            continue;
        }
        if kind == SFlag::S_IFREG && (known(&name) || is_temporary(&name)) {
            dir.unlink(&name)?;
        } else {
            leftovers.push(dir.join(&name));
        }
    }
    Ok(())
}

fn is_inbox(name: &str) -> bool {
    name.ends_with(".json") && !name.starts_with('.')
}

fn is_task(name: &str) -> bool {
    let task = name.strip_suffix(".json").is_some_and(|id| TaskId::parse(id).is_ok());
    task || name == ".lock" || name == ".highwatermark"
}
