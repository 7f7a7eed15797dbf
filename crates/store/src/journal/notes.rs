//! Writes and reads the notes of one team's journal.

use super::entry::{JournalEntry, JournalEntryKind, entry_id, parse_lines, read_file};
use super::storage::{MAX_JOURNAL_BYTES, file_name, previous_file_name};
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::team::Team;
use protocol::message::{InboxEntry, Message};
use std::collections::BTreeMap;

/// Whether notes are new, or come from the journal file before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoteAge {
    New,
    /// Older than what stands before them: they find room where new ones do not any more.
    CarriedOver,
}

impl Team {
    /// These are in the inbox `file` now.
    pub(crate) fn record_sent(&self, file: &str, messages: &[Message]) {
        self.record(file, messages.iter().cloned().map(JournalEntryKind::Sent));
    }

    /// The owner of the inbox has these.
    pub(crate) fn record_read(&self, file: &str, entries: &[InboxEntry]) {
        let had: Vec<String> =
            entries.iter().filter(|entry| entry.unread().is_some()).map(entry_id).collect();
        self.record(file, (!had.is_empty()).then_some(JournalEntryKind::Read(had)));
    }

    /// Nobody is to have what was sent so far.
    pub(crate) fn record_name_reuse(&self, file: &str) {
        self.record(file, [JournalEntryKind::NameReused {}]);
    }

    /// Left out where it can't be written, or where the files are not ours.
    fn record(&self, file: &str, notes: impl IntoIterator<Item = JournalEntryKind>) {
        if !self.name().is_claude_session() {
            let lines = notes.into_iter().map(|note| (file.to_owned(), note));
            self.append_to_journal(lines, NoteAge::New).ok();
        }
    }

    /// Adds notes to the journal.
    pub(super) fn append_to_journal(
        &self,
        notes: impl Iterator<Item = (String, JournalEntryKind)>,
        age: NoteAge,
    ) -> Result<(), Error> {
        let Some(of) = inboxes_generation(self)? else { return Ok(()) };
        let lines: String = notes
            .map(|(to, note)| {
                JournalEntry {
                    inbox_file: to,
                    generation: of,
                    is_carried_over: age == NoteAge::CarriedOver,
                    kind: note,
                }
                .to_line()
            })
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        let limit = match age {
            NoteAge::New => MAX_JOURNAL_BYTES,
            NoteAge::CarriedOver => MAX_JOURNAL_BYTES + MAX_JOURNAL_BYTES / 2,
        };
        self.journal().open_dir()?.append_within(&file_name(self.name()), lines.as_bytes(), limit)
    }
}

impl Team {
    /// What was lately stored in its inboxes and acknowledged, each with the name of the inbox's file; oldest first.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn acknowledged_messages(&self) -> Result<Vec<(String, Message)>, Error> {
        let sent = read_entries(self)?.into_iter().filter_map(|line| match line.kind {
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
        for line in read_entries(self)? {
            if let JournalEntryKind::Restored(ids) = line.kind {
                *counts.entry(line.inbox_file).or_default() += ids.len();
            }
        }
        Ok(counts)
    }
}

/// What tells the team's inboxes from those of an earlier or a later team of that name; none if there are none yet.
pub(super) fn inboxes_generation(team: &Team) -> Result<Option<u64>, Error> {
    team.inboxes_dir()?.map(DirHandle::generation).transpose()
}

/// All that is known of this team, oldest first.
pub(super) fn read_entries(team: &Team) -> Result<Vec<JournalEntry>, Error> {
    let journal = team.journal();
    let (Some(dir), Some(of)) = (journal.existing_dir()?, inboxes_generation(team)?) else {
        return Ok(Vec::new());
    };
    let mut lines = Vec::new();
    for part in [previous_file_name(team.name()), file_name(team.name())] {
        let bytes = read_file(dir, &part)?;
        let (old, new): (Vec<JournalEntry>, Vec<JournalEntry>) =
            parse_lines(&bytes).partition(|line| line.is_carried_over);
        lines.extend(old.into_iter().chain(new).filter(|line| line.generation == of));
    }
    Ok(lines)
}
