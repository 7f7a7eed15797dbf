//! What was acknowledged, noted outside the root: a foreign writer may put back an inbox as it was before a message of
//! ours came, and nothing in the root would tell that there was one. Whoever sends notes it behind the write, whoever
//! marks read notes it before; the daemon compares, and puts back what is missing, once ([`Ledger`]).
//!
//! A file a team, a line a note, only ever added to. A sender that is killed between the write and its note has not
//! acknowledged anything. A note that can't be written is left out: the message is stored all the same, and to say
//! otherwise would make its sender send it twice. Nothing is flushed: what a power cut takes, it takes from a message
//! that the inbox itself has.

mod ledger;
mod line;

pub use ledger::{Ledger, Looked, Reader};

use crate::directory::Directory;
use crate::error::Error;
use crate::state::StateDir;
use crate::team::Team;
use line::{Line, Note};
use protocol::message::{InboxEntry, Message};
use protocol::name::TeamName;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The most bytes of a file, which grows for as long as no daemon looks; what is sent then is not noted.
const LIMIT: u64 = 8 << 20;

/// Where the notes are; the directory is made by the first.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    dir: OnceLock<StateDir>,
}

impl Journal {
    /// Beside the directory of the copies.
    pub(crate) fn beside(aside: &Path) -> Journal {
        Journal { path: aside.with_file_name("journal"), dir: OnceLock::new() }
    }

    /// These are in the inbox `file` now.
    pub(crate) fn sent(&self, team: &Team, file: &str, messages: &[Message]) {
        self.note(team, file, messages.iter().cloned().map(Note::Sent));
    }

    /// The owner of the inbox has these.
    pub(crate) fn read(&self, team: &Team, file: &str, entries: &[InboxEntry]) {
        let had: Vec<String> =
            entries.iter().filter(|entry| entry.unread().is_some()).map(line::id).collect();
        self.note(team, file, (!had.is_empty()).then_some(Note::Read(had)));
    }

    /// Nobody is to have what was sent so far.
    pub(crate) fn retired(&self, team: &Team, file: &str) {
        self.note(team, file, [Note::Retired {}]);
    }

    /// Left out where it can't be written, or where the files are not ours.
    fn note(&self, team: &Team, file: &str, notes: impl IntoIterator<Item = Note>) {
        if !team.name().is_claude_session() {
            let lines = notes.into_iter().map(|note| (file.to_owned(), note));
            self.add(team, lines, false).ok();
        }
    }

    /// `old`: they are older than what stands before them, and find room where new ones do not any more.
    fn add(&self, team: &Team, notes: impl Iterator<Item = (String, Note)>, old: bool) -> Result<(), Error> {
        let Some(of) = place(team)? else { return Ok(()) };
        let lines: String = notes.map(|(to, note)| Line { to, of, old, note }.text()).collect();
        if lines.is_empty() {
            return Ok(());
        }
        let limit = if old { LIMIT + LIMIT / 2 } else { LIMIT };
        self.opened()?.append_within(&name(team.name()), lines.as_bytes(), limit)
    }

    fn opened(&self) -> Result<&StateDir, Error> {
        if self.dir.get().is_none() {
            drop(self.dir.set(StateDir::open(&self.path)?));
        }
        Ok(self.dir.get().expect("it was just set, by us or by another thread"))
    }

    /// None where nothing was ever noted.
    fn there(&self) -> Result<Option<&StateDir>, Error> {
        if self.dir.get().is_none() && !self.path.is_dir() {
            return Ok(None);
        }
        self.opened().map(Some)
    }

    /// What was noted last of where the inbox `file` may be taken up; none where nothing was, or it can't be read.
    pub(crate) fn cut(&self, team: &TeamName, file: &str) -> Option<Vec<u8>> {
        self.there().ok()??.read(&cut(team, file)).ok()?
    }

    /// Notes that, in place of what was noted before. Two who do so at once leave a mixture at worst, which nobody believes.
    pub(crate) fn note_cut(&self, team: &TeamName, file: &str, bytes: &[u8]) -> Result<(), Error> {
        self.opened()?.overwrite(&cut(team, file), bytes)
    }

    /// Of a team that is gone, or begins.
    pub(crate) fn forget(&self, team: &TeamName) -> Result<(), Error> {
        let Some(dir) = self.there()? else { return Ok(()) };
        let cuts = dir.names()?.into_iter().filter(|name| name.starts_with(&cut(team, "")));
        cuts.chain([earlier(team), name(team)]).try_for_each(|name| dir.remove(&name))
    }
}

impl Team {
    /// What was lately stored in its inboxes and acknowledged, each with the name of the inbox's file; oldest first.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn acknowledged(&self) -> Result<Vec<(String, Message)>, Error> {
        let sent = line::all(self)?.into_iter().filter_map(|line| match line.note {
            Note::Sent(message) => Some((line.to, message)),
            _ => None,
        });
        Ok(sent.collect())
    }

    /// How many messages were lately put back into each inbox that somebody had rewritten without them, by the name of
    /// its file.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn came_back(&self) -> Result<BTreeMap<String, usize>, Error> {
        let mut counts = BTreeMap::new();
        for line in line::all(self)? {
            if let Note::Back(ids) = line.note {
                *counts.entry(line.to).or_default() += ids.len();
            }
        }
        Ok(counts)
    }
}

/// What tells the team's inboxes from those of an earlier or a later team of that name; none if there are none yet.
fn place(team: &Team) -> Result<Option<u64>, Error> {
    team.inboxes()?.map(Directory::birth).transpose()
}

fn name(team: &TeamName) -> String {
    format!("{team}.jsonl")
}

/// No team's name has the sign in it.
fn cut(team: &TeamName, file: &str) -> String {
    format!("{team}@{file}")
}

/// What was in it before it was begun anew.
fn earlier(team: &TeamName) -> String {
    format!("{team}.jsonl.1")
}
