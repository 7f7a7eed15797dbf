//! The files of the journal, below the state directory. Each team has a file of journal entries,
//! and a tail index for each of its long inboxes.

use crate::error::Error;
use crate::state_directory_handle::StateDir;
use protocol::state_file_names::{older_team_log, team_log};
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Maximum size of a journal file, in bytes. If the file is full, new entries are dropped until the
/// daemon rotates the file.
pub(super) const MAX_JOURNAL_BYTES: u64 = 8 << 20;

/// The directory of the journal. The first entry creates it.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    dir: OnceLock<StateDir>,
}

impl Journal {
    /// Creates a journal with its files in the directory `path`. Touches no file.
    pub(crate) fn new(path: PathBuf) -> Journal {
        Journal { path, dir: OnceLock::new() }
    }

    pub(super) fn open_dir(&self) -> Result<&StateDir, Error> {
        if self.dir.get().is_none() {
            drop(self.dir.set(StateDir::open(&self.path)?));
        }
        Ok(self.dir.get().expect("it was just set, by us or by another thread"))
    }

    /// The directory. `None` if it does not exist, because nothing was ever recorded.
    pub(super) fn existing_dir(&self) -> Result<Option<&StateDir>, Error> {
        if self.dir.get().is_none() && !self.path.is_dir() {
            return Ok(None);
        }
        self.open_dir().map(Some)
    }

    /// Reads the tail index of the inbox `file`. `None` if it is missing or can't be read.
    pub(crate) fn read_tail_index(&self, team: &TeamName, file: &str) -> Option<Vec<u8>> {
        self.existing_dir().ok()??.read(&tail_index_name(team, file)).ok()?
    }

    /// Overwrites the tail index of the inbox `file`. If two writers overwrite the index at the
    /// same time, their bytes may mix; readers detect this by the checksum.
    pub(crate) fn write_tail_index(&self, team: &TeamName, file: &str, bytes: &[u8]) -> Result<(), Error> {
        self.open_dir()?.overwrite(&tail_index_name(team, file), bytes)
    }

    /// Deletes a team's journal and tail indexes. Called when a team is created or deleted.
    pub(crate) fn delete_team(&self, team: &TeamName) -> Result<(), Error> {
        let Some(dir) = self.existing_dir()? else { return Ok(()) };
        let tail_indexes =
            dir.names()?.into_iter().filter(|name| name.starts_with(&tail_index_name(team, "")));
        tail_indexes.chain([older_team_log(team), team_log(team)]).try_for_each(|name| dir.remove(&name))
    }
}

/// The name of a tail index. Team names never contain `@`.
fn tail_index_name(team: &TeamName, file: &str) -> String {
    format!("{team}@{file}")
}
