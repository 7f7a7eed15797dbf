//! Writes and reads the entries of one team's journal.

use super::entry::{JournalEntry, JournalEntryKind, entry_id, parse_lines, read_file};
use super::journal_and_tail_index_files::MAX_JOURNAL_BYTES;
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::team_handle::Team;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::state_file_names::{older_team_log, team_log};
use std::collections::BTreeMap;

/// Whether journal entries are new or copied from the previous journal file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JournalEntryAge {
    New,
    /// Copied entries may use more space than new ones.
    CarriedOver,
}

impl Team {
    /// Records that messages were stored in the inbox `file`.
    pub(crate) fn record_sent(&self, file: &str, messages: &[Message]) {
        self.record(file, messages.iter().cloned().map(JournalEntryKind::Sent));
    }

    /// Records that the owner of the inbox `file` has read these entries.
    pub(crate) fn record_read(&self, file: &str, entries: &[InboxEntry]) {
        let ids: Vec<String> =
            entries.iter().filter(|entry| entry.unread().is_some()).map(entry_id).collect();
        self.record(file, (!ids.is_empty()).then_some(JournalEntryKind::Read(ids)));
    }

    /// Records that a new member got the name of the inbox `file`.
    pub(crate) fn record_name_reuse(&self, file: &str) {
        self.record(file, [JournalEntryKind::NameReused {}]);
    }

    /// Appends entries to the journal. Does nothing for a session team of Claude Code. Errors are
    /// ignored.
    fn record(&self, file: &str, entries: impl IntoIterator<Item = JournalEntryKind>) {
        if !self.name().is_claude_session() {
            let entries = entries.into_iter().map(|kind| (file.to_owned(), kind));
            self.append_to_journal(entries, JournalEntryAge::New).ok();
        }
    }

    /// Appends entries to the journal. If the file is full, they are dropped.
    pub(super) fn append_to_journal(
        &self,
        entries: impl Iterator<Item = (String, JournalEntryKind)>,
        age: JournalEntryAge,
    ) -> Result<(), Error> {
        let Some(generation) = inboxes_generation(self)? else { return Ok(()) };
        let entries: String = entries
            .map(|(inbox_file, kind)| {
                JournalEntry {
                    inbox_file,
                    generation,
                    is_carried_over: age == JournalEntryAge::CarriedOver,
                    kind,
                }
                .to_line()
            })
            .collect();
        if entries.is_empty() {
            return Ok(());
        }
        let limit = match age {
            JournalEntryAge::New => MAX_JOURNAL_BYTES,
            JournalEntryAge::CarriedOver => MAX_JOURNAL_BYTES + MAX_JOURNAL_BYTES / 2,
        };
        self.journal().open_dir()?.append_within(&team_log(self.name()), entries.as_bytes(), limit)
    }
}

impl Team {
    /// The messages in the journal, oldest first, each with the file name of its inbox. The result
    /// lacks messages whose entries a rotation of the journal has dropped.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn acknowledged_messages(&self) -> Result<Vec<(String, Message)>, Error> {
        let sent = read_entries(self)?.into_iter().filter_map(|entry| match entry.kind {
            JournalEntryKind::Sent(message) => Some((entry.inbox_file, message)),
            _ => None,
        });
        Ok(sent.collect())
    }

    /// The number of restored messages for each inbox. The key is the inbox's file name. Only
    /// messages whose restoration is still in the journal count.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn restored_counts(&self) -> Result<BTreeMap<String, usize>, Error> {
        let mut counts = BTreeMap::new();
        for entry in read_entries(self)? {
            if let JournalEntryKind::Restored(ids) = entry.kind {
                *counts.entry(entry.inbox_file).or_default() += ids.len();
            }
        }
        Ok(counts)
    }
}

/// A number that distinguishes this team's inboxes from those of an earlier or later team with the
/// same name. `None` if the team has no inboxes yet.
pub(super) fn inboxes_generation(team: &Team) -> Result<Option<u64>, Error> {
    team.inboxes_dir()?.map(DirHandle::generation).transpose()
}

/// The team's entries in both journal files, oldest first.
pub(super) fn read_entries(team: &Team) -> Result<Vec<JournalEntry>, Error> {
    let journal = team.journal();
    let (Some(dir), Some(generation)) = (journal.existing_dir()?, inboxes_generation(team)?) else {
        return Ok(Vec::new());
    };
    let mut entries = Vec::new();
    for name in [older_team_log(team.name()), team_log(team.name())] {
        let bytes = read_file(dir, &name)?;
        let (carried_over, recent): (Vec<JournalEntry>, Vec<JournalEntry>) =
            parse_lines(&bytes).partition(|entry| entry.is_carried_over);
        entries.extend(carried_over.into_iter().chain(recent).filter(|entry| entry.generation == generation));
    }
    Ok(entries)
}
