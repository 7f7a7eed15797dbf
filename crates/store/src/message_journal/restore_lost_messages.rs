//! Restores lost messages: those that the journal has as stored and unread, and that are missing
//! from their inbox.
//!
//! Only the daemon restores messages. The daemon keeps the ids of unread messages in memory; the
//! texts stay in the journal files.
//!
//! A team has a current and a previous journal file. When the current file is large, the daemon
//! rotates the files in two steps. First it copies the entries of unread messages from the previous
//! file to the current file. Then it renames the current file, which replaces the previous file.

use super::entry::{JournalEntry, JournalEntryKind, entry_id, message_id, parse_lines, read_file};
use super::journal_and_tail_index_files::MAX_JOURNAL_BYTES;
use super::team_journal::{JournalEntryAge, inboxes_generation, read_entries};
use crate::error::Error;
use crate::inbox::Inbox;
use crate::team_handle::Team;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::state_file_names::{older_team_log, team_log};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// A current journal file up to this size, in bytes, is never rotated. A file larger than half of
/// [`MAX_JOURNAL_BYTES`] always is. Between these sizes, the current file is rotated if it is
/// larger than the previous file.
const ROTATE_BYTES: u64 = 256 << 10;
/// A recipient can read a message before the sender has recorded the message in the journal. This
/// is the maximum number of such reads that the daemon remembers.
const MAX_EARLY_READS: usize = 1_024;
/// After this many removals of restored messages from an inbox, no more messages are restored in
/// it. The program that reads the inbox is then assumed to remove messages after reading them.
const REMOVALS_UNTIL_READER: u32 = 3;

/// What kind of program reads an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderKind {
    /// Only teamd's own delivery, which records what it has delivered.
    OwnDelivery,
    /// Possibly a program that reads the file itself and removes messages that it has read.
    ForeignProgram,
}

/// How an inbox has changed between two scans.
#[derive(Debug, Clone, Copy)]
pub enum InboxChange<'e> {
    /// These entries were appended, and nothing else has changed.
    Appended(&'e [InboxEntry]),
    /// Something else has changed, or this is the first scan.
    Rewritten,
}

/// The state of a message that its sender has acknowledged and no reader has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    /// Recorded in the journal, but not found in the inbox so far.
    NotSeen,
    /// Found in the inbox, unread.
    InInbox,
    /// Missing from the inbox and restored.
    Restored,
}

/// Knows the unread messages of one team, to find those that are lost. The daemon has one
/// reconciler for each team. [`InboxReconciler::read_journal`] reads new journal entries, and
/// [`InboxReconciler::reconcile`] compares the unread messages with an inbox.
#[derive(Debug, Default)]
pub struct InboxReconciler {
    files: [Option<JournalFile>; 2],
    unread: BTreeMap<String, BTreeMap<String, MessageState>>,
    /// Inboxes whose readers remove messages after reading them.
    removing_inboxes: BTreeSet<String>,
    /// Number of removals of restored messages, for inboxes whose reader never recorded a read.
    removal_counts: BTreeMap<String, u32>,
    /// Inboxes whose reader has recorded a read.
    inboxes_with_recorded_reads: BTreeSet<String>,
    early_reads: VecDeque<String>,
}

/// An open journal file, and how far it has been read.
#[derive(Debug)]
struct JournalFile {
    file: File,
    offset: u64,
}

impl JournalFile {
    /// Reads the complete lines that were appended since the last call. `None` if the file was
    /// deleted.
    fn read_lines(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let metadata = self.file.metadata()?;
        let mut bytes = vec![0; metadata.len().saturating_sub(self.offset) as usize];
        self.file.read_exact_at(&mut bytes, self.offset)?;
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1));
        self.offset += bytes.len() as u64;
        Ok((metadata.nlink() > 0).then_some(bytes))
    }
}

impl InboxReconciler {
    /// Reads the journal entries that were added since the last call. The caller must call this
    /// before it reads an inbox. A sender writes a message to the inbox first and to the journal
    /// second. So if the journal has a message and an inbox that is read later lacks it, the
    /// message was removed from the inbox.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn read_journal(&mut self, team: &Team) -> Result<(), Error> {
        let (Some(dir), Some(generation)) = (team.journal().existing_dir()?, inboxes_generation(team)?)
        else {
            return Ok(());
        };
        for (index, name) in [older_team_log(team.name()), team_log(team.name())].into_iter().enumerate() {
            if self.files[index].is_none() {
                self.files[index] = dir.open_file(&name)?.map(|file| JournalFile { file, offset: 0 });
            }
            let Some(file) = &mut self.files[index] else { continue };
            let bytes =
                file.read_lines().map_err(|cause| Error::io("read", &dir.path().join(&name), cause))?;
            let is_deleted = bytes.is_none();
            let mut entries: Vec<JournalEntry> = parse_lines(&bytes.unwrap_or_default())
                .filter(|entry| entry.generation == generation)
                .collect();
            entries.sort_by_key(|entry| !entry.is_carried_over);
            entries.into_iter().for_each(|entry| self.apply(entry));
            if is_deleted {
                self.files[index] = None;
            }
        }
        self.rotate(team)
    }

    fn apply(&mut self, JournalEntry { inbox_file, kind, .. }: JournalEntry) {
        let unread = self.unread.entry(inbox_file.clone()).or_default();
        match kind {
            JournalEntryKind::Sent(message) => {
                let id = message_id(&message);
                if let Some(position) = self.early_reads.iter().position(|early_id| *early_id == id) {
                    self.early_reads.remove(position);
                } else {
                    unread.entry(id).or_insert(MessageState::NotSeen);
                }
            }
            JournalEntryKind::Read(ids) => {
                self.inboxes_with_recorded_reads.insert(inbox_file);
                self.early_reads.extend(ids.into_iter().filter(|id| unread.remove(id).is_none()));
                let excess = self.early_reads.len().saturating_sub(MAX_EARLY_READS);
                self.early_reads.drain(..excess);
            }
            JournalEntryKind::Restored(ids) => ids.into_iter().for_each(|id| {
                unread.entry(id).and_modify(|state| *state = MessageState::Restored);
            }),
            JournalEntryKind::ReaderRemoves {} => drop(self.removing_inboxes.insert(inbox_file)),
            JournalEntryKind::NameReused {} => {
                unread.clear();
                self.removing_inboxes.remove(&inbox_file);
                self.removal_counts.remove(&inbox_file);
                self.inboxes_with_recorded_reads.remove(&inbox_file);
            }
        }
    }

    /// File names of the inboxes with recorded messages that were not found so far.
    pub fn inboxes_with_unseen(&self) -> Vec<String> {
        let inboxes = self
            .unread
            .iter()
            .filter(|(_, messages)| messages.values().any(|state| *state == MessageState::NotSeen));
        inboxes.map(|(inbox_file, _)| inbox_file.clone()).collect()
    }

    /// Forgets the unread messages of `inbox`, so that they are not restored.
    pub fn stop_restoring(&mut self, inbox: &Inbox) {
        self.unread.remove(inbox.file_name());
    }

    /// Compares the journal with an inbox that was just scanned, and restores messages that are
    /// unread and missing from the inbox. Returns the restored messages. Each message is restored
    /// only once.
    ///
    /// # Errors
    /// The errors of changing the inbox. After an error, the next call tries again.
    pub fn reconcile(
        &mut self,
        inbox: &Inbox,
        change: InboxChange<'_>,
        reader: ReaderKind,
    ) -> Result<Vec<Message>, Error> {
        let Some(messages) = self.unread.get_mut(inbox.file_name()).filter(|messages| !messages.is_empty())
        else {
            return Ok(Vec::new());
        };
        if let InboxChange::Appended(entries) = change {
            entries.iter().for_each(|entry| drop(observe(messages, entry)));
            if messages.values().all(|state| *state != MessageState::NotSeen) {
                return Ok(Vec::new());
            }
        }
        let found_ids = inbox
            .fold(|found_ids: &mut BTreeSet<String>, entry| found_ids.extend(observe(messages, &entry)))?;
        let missing_ids: BTreeSet<String> =
            messages.keys().filter(|id| !found_ids.contains(*id)).cloned().collect();
        if missing_ids.is_empty() {
            return Ok(Vec::new());
        }
        // If a later step fails, the next call searches for these messages again.
        messages
            .iter_mut()
            .filter(|(id, state)| **state == MessageState::InInbox && missing_ids.contains(*id))
            .for_each(|(_, state)| *state = MessageState::NotSeen);
        // A missing message is not lost if its recipient has read it. The recipient may have done
        // so after the daemon last read the journal, so the new journal entries are read first.
        self.read_journal(inbox.team())?;
        let lost = self.find_lost(inbox, &missing_ids, reader)?;
        if lost.is_empty() { Ok(Vec::new()) } else { self.restore(inbox, &lost) }
    }

    /// Decides which of the messages `missing_ids` must be restored, and returns their ids. The
    /// other messages are forgotten: they were restored once already, or the program that reads
    /// this inbox removes messages after reading them.
    fn find_lost(
        &mut self,
        inbox: &Inbox,
        missing_ids: &BTreeSet<String>,
        reader: ReaderKind,
    ) -> Result<BTreeSet<String>, Error> {
        let (inbox_file, team) = (inbox.file_name(), inbox.team());
        let has_restored = |messages: &BTreeMap<String, MessageState>| {
            missing_ids.iter().any(|id| messages.get(id) == Some(&MessageState::Restored))
        };
        let is_repeated = self.unread.get(inbox_file).is_some_and(has_restored);
        if is_repeated && reader == ReaderKind::ForeignProgram && self.count_removal(inbox_file) {
            team.append_to_journal(
                [(inbox_file.to_owned(), JournalEntryKind::ReaderRemoves {})].into_iter(),
                JournalEntryAge::New,
            )?;
        }
        let Some(messages) = self.unread.get_mut(inbox_file) else { return Ok(BTreeSet::new()) };
        let reader_removes = self.removing_inboxes.contains(inbox_file);
        messages.retain(|id, state| {
            !missing_ids.contains(id) || (*state != MessageState::Restored && !reader_removes)
        });
        Ok(missing_ids.iter().filter(|id| messages.contains_key(*id)).cloned().collect())
    }

    fn restore(&mut self, inbox: &Inbox, lost: &BTreeSet<String>) -> Result<Vec<Message>, Error> {
        let (inbox_file, team) = (inbox.file_name().to_owned(), inbox.team());
        // The messages stay unread until they are restored, so that a failure does not forget them.
        let unread = lost.iter().map(|id| (id.clone(), MessageState::NotSeen));
        self.unread.entry(inbox_file.clone()).or_default().extend(unread);
        let sent = sent_messages(team, &inbox_file)?;
        let restored = inbox.restore(&sent, lost)?;
        let restored_ids: Vec<String> = restored.iter().map(message_id).collect();
        let messages = self.unread.entry(inbox_file.clone()).or_default();
        // A message that did not fit into the new journal file can't be restored any more.
        messages.retain(|id, _| !lost.contains(id));
        let kept_ids = sent.into_iter().map(|(id, _)| id).filter(|id| lost.contains(id));
        messages.extend(kept_ids.map(|id| (id, MessageState::InInbox)));
        messages.extend(restored_ids.iter().map(|id| (id.clone(), MessageState::Restored)));
        let entry =
            (!restored_ids.is_empty()).then_some((inbox_file, JournalEntryKind::Restored(restored_ids)));
        team.append_to_journal(entry.into_iter(), JournalEntryAge::New)?;
        Ok(restored)
    }

    /// Counts how often restored messages have disappeared from the inbox again. Returns true when
    /// the count reaches [`REMOVALS_UNTIL_READER`]: the program that reads the inbox then seems to
    /// remove messages itself.
    ///
    /// If that program has ever recorded a read in the journal, the journal shows which messages
    /// are read. In this case, the method returns false without counting.
    fn count_removal(&mut self, inbox_file: &str) -> bool {
        if self.inboxes_with_recorded_reads.contains(inbox_file) {
            return false;
        }
        let count = self.removal_counts.entry(inbox_file.to_owned()).or_default();
        *count += 1;
        *count >= REMOVALS_UNTIL_READER && self.removing_inboxes.insert(inbox_file.to_owned())
    }

    /// If the current journal file has grown too large, renames it to replace the previous file.
    /// The next entry starts a new file. Before the rename, the entries of unread messages are
    /// copied from the previous to the current file, as far as they fit.
    fn rotate(&mut self, team: &Team) -> Result<(), Error> {
        let [previous, Some(current)] = &self.files else { return Ok(()) };
        let limit = previous
            .as_ref()
            .map_or(0, |previous| previous.offset)
            .clamp(ROTATE_BYTES, MAX_JOURNAL_BYTES / 2);
        if current.offset <= limit {
            return Ok(());
        }
        let Some(dir) = team.journal().existing_dir()? else { return Ok(()) };
        let removing_inboxes = self
            .removing_inboxes
            .iter()
            .map(|inbox_file| (inbox_file.clone(), JournalEntryKind::ReaderRemoves {}));
        team.append_to_journal(removing_inboxes, JournalEntryAge::CarriedOver)?;
        let bytes = read_file(dir, &older_team_log(team.name()))?;
        let mut kept: Vec<JournalEntry> = parse_lines(&bytes).filter(|entry| self.is_unread(entry)).collect();
        // Puts the oldest entries first: those that an earlier rotation copied into the previous
        // file.
        kept.sort_by_key(|entry| !entry.is_carried_over);
        team.append_to_journal(
            kept.into_iter().map(|entry| (entry.inbox_file, entry.kind)),
            JournalEntryAge::CarriedOver,
        )?;
        dir.rename(&team_log(team.name()), &older_team_log(team.name()))?;
        let [_, current] = std::mem::take(&mut self.files);
        self.files = [current, None];
        Ok(())
    }

    fn is_unread(&self, entry: &JournalEntry) -> bool {
        let is_unread_id = |id: &String| {
            self.unread.get(&entry.inbox_file).is_some_and(|is_unread_id| is_unread_id.contains_key(id))
        };
        match &entry.kind {
            JournalEntryKind::Sent(message) => is_unread_id(&message_id(message)),
            JournalEntryKind::Restored(ids) => ids.iter().any(is_unread_id),
            JournalEntryKind::Read(_)
            | JournalEntryKind::ReaderRemoves {}
            | JournalEntryKind::NameReused {} => false,
        }
    }
}

/// Updates `unread`, the messages that are unread according to the journal, from one inbox entry.
/// If the entry is marked read, its message is removed from `unread`, and the result is `None`. If
/// the entry is unread, `unread` records that the message is in the inbox, and the result is the
/// message's id. If `unread` does not have the message, nothing changes, and the result is `None`.
fn observe(unread: &mut BTreeMap<String, MessageState>, entry: &InboxEntry) -> Option<String> {
    let id = entry_id(entry);
    let state = unread.get_mut(&id)?;
    if entry.unread().is_none() {
        unread.remove(&id);
        return None;
    }
    if *state == MessageState::NotSeen {
        *state = MessageState::InInbox;
    }
    Some(id)
}

/// The recorded messages of an inbox, in the order of the journal.
fn sent_messages(team: &Team, inbox_file: &str) -> Result<Vec<(String, Message)>, Error> {
    let messages =
        read_entries(team)?.into_iter().filter(|entry| entry.inbox_file == inbox_file).filter_map(|entry| {
            match entry.kind {
                JournalEntryKind::Sent(message) => Some((message_id(&message), message)),
                _ => None,
            }
        });
    Ok(messages.collect())
}
