//! The files of the journal, in a directory of the state directory: one of notes for each team, and the tail indexes of its
//! long inboxes.

use crate::error::Error;
use crate::state_dir::StateDir;
use protocol::name::TeamName;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The most bytes of a file, which grows for as long as no daemon looks; what is sent then is not noted.
pub(super) const MAX_JOURNAL_BYTES: u64 = 8 << 20;

/// Where the notes are; the directory is made by the first.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    dir: OnceLock<StateDir>,
}

impl Journal {
    /// With its files in `path`.
    pub(crate) fn new(path: PathBuf) -> Journal {
        Journal { path, dir: OnceLock::new() }
    }

    pub(super) fn open_dir(&self) -> Result<&StateDir, Error> {
        if self.dir.get().is_none() {
            drop(self.dir.set(StateDir::open(&self.path)?));
        }
        Ok(self.dir.get().expect("it was just set, by us or by another thread"))
    }

    /// None where nothing was ever noted.
    pub(super) fn existing_dir(&self) -> Result<Option<&StateDir>, Error> {
        if self.dir.get().is_none() && !self.path.is_dir() {
            return Ok(None);
        }
        self.open_dir().map(Some)
    }

    /// What was noted last of where the inbox `file` may be taken up; none where nothing was, or it can't be read.
    pub(crate) fn read_tail_index(&self, team: &TeamName, file: &str) -> Option<Vec<u8>> {
        self.existing_dir().ok()??.read(&tail_index_name(team, file)).ok()?
    }

    /// Notes that, in place of what was noted before. Two who do so at once leave a mixture at worst, which nobody believes.
    pub(crate) fn write_tail_index(&self, team: &TeamName, file: &str, bytes: &[u8]) -> Result<(), Error> {
        self.open_dir()?.overwrite(&tail_index_name(team, file), bytes)
    }

    /// Of a team that is gone, or begins.
    pub(crate) fn delete_team(&self, team: &TeamName) -> Result<(), Error> {
        let Some(dir) = self.existing_dir()? else { return Ok(()) };
        let cuts = dir.names()?.into_iter().filter(|name| name.starts_with(&tail_index_name(team, "")));
        cuts.chain([previous_file_name(team), file_name(team)]).try_for_each(|name| dir.remove(&name))
    }
}

pub(super) fn file_name(team: &TeamName) -> String {
    format!("{team}.jsonl")
}

/// No team's name has the sign in it.
fn tail_index_name(team: &TeamName, file: &str) -> String {
    format!("{team}@{file}")
}

/// What was in it before it was begun anew.
pub(super) fn previous_file_name(team: &TeamName) -> String {
    format!("{team}.jsonl.1")
}
