//! What was acknowledged, noted outside the root: a foreign writer may put back an inbox as it was before a message of
//! ours came, and nothing in the root would tell that there was one. Whoever sends notes it behind the write, whoever
//! marks read notes it before; the daemon compares, and puts back what is missing, once (`InboxReconciler`).
//!
//! A file a team, a line a note, only ever added to. A sender that is killed between the write and its note has not
//! acknowledged anything. A note that can't be written is left out: the message is stored all the same, and to say
//! otherwise would make its sender send it twice. Nothing is flushed: what a power cut takes, it takes from a message
//! that the inbox itself has.

mod entry;
mod reconciler;

pub use reconciler::{InboxChange, InboxReconciler, ReaderKind};

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::state_dir::StateDir;
use crate::team::Team;
use entry::{JournalEntry, JournalEntryKind};
use protocol::message::{InboxEntry, Message};
use protocol::name::TeamName;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The most bytes of a file, which grows for as long as no daemon looks; what is sent then is not noted.
const MAX_JOURNAL_BYTES: u64 = 8 << 20;

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

    /// These are in the inbox `file` now.
    pub(crate) fn record_sent(&self, team: &Team, file: &str, messages: &[Message]) {
        self.record(team, file, messages.iter().cloned().map(JournalEntryKind::Sent));
    }

    /// The owner of the inbox has these.
    pub(crate) fn record_read(&self, team: &Team, file: &str, entries: &[InboxEntry]) {
        let had: Vec<String> =
            entries.iter().filter(|entry| entry.unread().is_some()).map(entry::entry_id).collect();
        self.record(team, file, (!had.is_empty()).then_some(JournalEntryKind::Read(had)));
    }

    /// Nobody is to have what was sent so far.
    pub(crate) fn record_name_reuse(&self, team: &Team, file: &str) {
        self.record(team, file, [JournalEntryKind::NameReused {}]);
    }

    /// Left out where it can't be written, or where the files are not ours.
    fn record(&self, team: &Team, file: &str, notes: impl IntoIterator<Item = JournalEntryKind>) {
        if !team.name().is_claude_session() {
            let lines = notes.into_iter().map(|note| (file.to_owned(), note));
            self.append(team, lines, false).ok();
        }
    }

    /// `old`: they are older than what stands before them, and find room where new ones do not any more.
    fn append(
        &self,
        team: &Team,
        notes: impl Iterator<Item = (String, JournalEntryKind)>,
        old: bool,
    ) -> Result<(), Error> {
        let Some(of) = inboxes_generation(team)? else { return Ok(()) };
        let lines: String = notes
            .map(|(to, note)| {
                JournalEntry { inbox_file: to, generation: of, is_carried_over: old, kind: note }.to_line()
            })
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        let limit = if old { MAX_JOURNAL_BYTES + MAX_JOURNAL_BYTES / 2 } else { MAX_JOURNAL_BYTES };
        self.open_dir()?.append_within(&file_name(team.name()), lines.as_bytes(), limit)
    }

    fn open_dir(&self) -> Result<&StateDir, Error> {
        if self.dir.get().is_none() {
            drop(self.dir.set(StateDir::open(&self.path)?));
        }
        Ok(self.dir.get().expect("it was just set, by us or by another thread"))
    }

    /// None where nothing was ever noted.
    fn existing_dir(&self) -> Result<Option<&StateDir>, Error> {
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

impl Team {
    /// What was lately stored in its inboxes and acknowledged, each with the name of the inbox's file; oldest first.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn acknowledged_messages(&self) -> Result<Vec<(String, Message)>, Error> {
        let sent = entry::read_entries(self)?.into_iter().filter_map(|line| match line.kind {
            JournalEntryKind::Sent(message) => Some((line.inbox_file, message)),
            _ => None,
        });
        Ok(sent.collect())
    }

    /// How many messages were lately put back into each inbox that somebody had rewritten without them, by the name of
    /// its file.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn restored_counts(&self) -> Result<BTreeMap<String, usize>, Error> {
        let mut counts = BTreeMap::new();
        for line in entry::read_entries(self)? {
            if let JournalEntryKind::Restored(ids) = line.kind {
                *counts.entry(line.inbox_file).or_default() += ids.len();
            }
        }
        Ok(counts)
    }
}

/// What tells the team's inboxes from those of an earlier or a later team of that name; none if there are none yet.
fn inboxes_generation(team: &Team) -> Result<Option<u64>, Error> {
    team.inboxes_dir()?.map(DirHandle::generation).transpose()
}

fn file_name(team: &TeamName) -> String {
    format!("{team}.jsonl")
}

/// No team's name has the sign in it.
fn tail_index_name(team: &TeamName, file: &str) -> String {
    format!("{team}@{file}")
}

/// What was in it before it was begun anew.
fn previous_file_name(team: &TeamName) -> String {
    format!("{team}.jsonl.1")
}
