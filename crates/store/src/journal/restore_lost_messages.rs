//! Compares the journal with the inboxes. Finds acknowledged messages that no reader has read and
//! that are missing from their inbox, and restores them.
//!
//! Only the daemon restores messages. The daemon keeps the ids of unread messages in memory; the
//! texts stay in the journal files. A team has a current and a previous journal file, which only
//! the daemon rotates. A rotation copies the entries of unread messages from the previous to the
//! current file, which then replaces the previous one.

use super::entry::{JournalEntry, JournalEntryKind, entry_id, message_id, parse_lines, read_file};
use super::storage::{MAX_JOURNAL_BYTES, file_name, previous_file_name};
use super::team_journal::{NoteAge, inboxes_generation, read_entries};
use crate::error::Error;
use crate::inbox::Inbox;
use crate::team_handle::Team;
use protocol::message::{InboxEntry, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Size from which the current journal file is rotated, in bytes. If the previous file is larger,
/// the current file may grow to the same size, up to half of [`MAX_JOURNAL_BYTES`].
const ROTATE_BYTES: u64 = 256 << 10;
/// Maximum number of remembered ids of messages that were read before their sender recorded them.
const MAX_EARLY_READS: usize = 1_024;
/// Number of times that restored messages may disappear from an inbox. After that many times, the
/// program that reads the inbox is assumed to remove read messages itself.
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

/// The unread messages of one team, by the inbox's file name and the message's id. The daemon has
/// one reconciler for each team. [`InboxReconciler::read_journal`] reads new journal entries, and
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
    noting_inboxes: BTreeSet<String>,
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
        let meta = self.file.metadata()?;
        let mut bytes = vec![0; meta.len().saturating_sub(self.offset) as usize];
        self.file.read_exact_at(&mut bytes, self.offset)?;
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        self.offset += bytes.len() as u64;
        Ok((meta.nlink() > 0).then_some(bytes))
    }
}

impl InboxReconciler {
    /// Reads the journal entries that were added since the last call. The caller does this before
    /// it reads an inbox. A sender writes to the inbox before the journal. So a recorded message
    /// that the inbox lacks afterwards was removed from it.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn read_journal(&mut self, team: &Team) -> Result<(), Error> {
        let (Some(dir), Some(generation)) = (team.journal().existing_dir()?, inboxes_generation(team)?)
        else {
            return Ok(());
        };
        for (at, name) in [previous_file_name(team.name()), file_name(team.name())].into_iter().enumerate() {
            if self.files[at].is_none() {
                self.files[at] = dir.open_file(&name)?.map(|file| JournalFile { file, offset: 0 });
            }
            let Some(part) = &mut self.files[at] else { continue };
            let more =
                part.read_lines().map_err(|cause| Error::io("read", &dir.path().join(&name), cause))?;
            let gone = more.is_none();
            let mut entries: Vec<JournalEntry> = parse_lines(&more.unwrap_or_default())
                .filter(|entry| entry.generation == generation)
                .collect();
            entries.sort_by_key(|entry| !entry.is_carried_over);
            entries.into_iter().for_each(|entry| self.apply(entry));
            if gone {
                self.files[at] = None;
            }
        }
        self.rotate(team)
    }

    fn apply(&mut self, JournalEntry { inbox_file: to, kind: note, .. }: JournalEntry) {
        let open = self.unread.entry(to.clone()).or_default();
        match note {
            JournalEntryKind::Sent(message) => {
                let id = message_id(&message);
                if let Some(at) = self.early_reads.iter().position(|early| *early == id) {
                    self.early_reads.remove(at);
                } else {
                    open.entry(id).or_insert(MessageState::NotSeen);
                }
            }
            JournalEntryKind::Read(ids) => {
                self.noting_inboxes.insert(to);
                self.early_reads.extend(ids.into_iter().filter(|id| open.remove(id).is_none()));
                let surplus = self.early_reads.len().saturating_sub(MAX_EARLY_READS);
                self.early_reads.drain(..surplus);
            }
            JournalEntryKind::Restored(ids) => ids.into_iter().for_each(|id| {
                open.entry(id).and_modify(|open| *open = MessageState::Restored);
            }),
            JournalEntryKind::ReaderRemoves {} => drop(self.removing_inboxes.insert(to)),
            JournalEntryKind::NameReused {} => {
                open.clear();
                self.removing_inboxes.remove(&to);
                self.removal_counts.remove(&to);
                self.noting_inboxes.remove(&to);
            }
        }
    }

    /// File names of the inboxes with recorded messages that were not found so far.
    pub fn inboxes_with_unseen(&self) -> Vec<String> {
        let unseen =
            self.unread.iter().filter(|(_, open)| open.values().any(|open| *open == MessageState::NotSeen));
        unseen.map(|(to, _)| to.clone()).collect()
    }

    /// Forgets the unread messages of `inbox`, so that they are not restored.
    pub fn stop_restoring(&mut self, inbox: &Inbox) {
        self.unread.remove(inbox.file_name());
    }

    /// Compares the journal with the scanned inbox, and restores messages that are missing and
    /// unread. Returns the restored messages. Each message is restored only once.
    ///
    /// # Errors
    /// The errors of changing the inbox. After an error, the next call tries again.
    pub fn reconcile(
        &mut self,
        inbox: &Inbox,
        change: InboxChange<'_>,
        reader: ReaderKind,
    ) -> Result<Vec<Message>, Error> {
        let Some(open) = self.unread.get_mut(inbox.file_name()).filter(|open| !open.is_empty()) else {
            return Ok(Vec::new());
        };
        if let InboxChange::Appended(new) = change {
            new.iter().for_each(|entry| drop(observe(open, entry)));
            if open.values().all(|open| *open != MessageState::NotSeen) {
                return Ok(Vec::new());
            }
        }
        let found = inbox.fold(|found: &mut BTreeSet<String>, entry| found.extend(observe(open, &entry)))?;
        let gone: BTreeSet<String> = open.keys().filter(|id| !found.contains(*id)).cloned().collect();
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        // If a later step fails, the next call searches for these messages again.
        open.iter_mut()
            .filter(|(id, open)| **open == MessageState::InInbox && gone.contains(*id))
            .for_each(|(_, open)| *open = MessageState::NotSeen);
        // Since the last read of the journal, the inbox's owner may have read one of these
        // messages, and another program may have removed that message. The journal then says that
        // it was read, so it is not lost.
        self.read_journal(inbox.team())?;
        let lost = self.find_lost(inbox, &gone, reader)?;
        if lost.is_empty() { Ok(Vec::new()) } else { self.restore(inbox, &lost) }
    }

    /// The messages of `gone` that are to be restored. The other messages of `gone` are forgotten.
    fn find_lost(
        &mut self,
        inbox: &Inbox,
        gone: &BTreeSet<String>,
        reader: ReaderKind,
    ) -> Result<BTreeSet<String>, Error> {
        let (to, team) = (inbox.file_name(), inbox.team());
        let has_restored = |open: &BTreeMap<String, MessageState>| {
            gone.iter().any(|id| open.get(id) == Some(&MessageState::Restored))
        };
        let is_repeated = self.unread.get(to).is_some_and(has_restored);
        if is_repeated && reader == ReaderKind::ForeignProgram && self.count_removal(to) {
            team.append_to_journal(
                [(to.to_owned(), JournalEntryKind::ReaderRemoves {})].into_iter(),
                NoteAge::New,
            )?;
        }
        let Some(open) = self.unread.get_mut(to) else { return Ok(BTreeSet::new()) };
        let taken = self.removing_inboxes.contains(to);
        open.retain(|id, open| !gone.contains(id) || (*open != MessageState::Restored && !taken));
        Ok(gone.iter().filter(|id| open.contains_key(*id)).cloned().collect())
    }

    fn restore(&mut self, inbox: &Inbox, lost: &BTreeSet<String>) -> Result<Vec<Message>, Error> {
        let (to, team) = (inbox.file_name().to_owned(), inbox.team());
        // The messages stay unread until they are restored, so that a failure does not forget them.
        let unread = lost.iter().map(|id| (id.clone(), MessageState::NotSeen));
        self.unread.entry(to.clone()).or_default().extend(unread);
        let sent = sent_messages(team, &to)?;
        let restored = inbox.restore(&sent, lost)?;
        let restored_ids: Vec<String> = restored.iter().map(message_id).collect();
        let open = self.unread.entry(to.clone()).or_default();
        // A message that did not fit into the new journal file can't be restored any more.
        open.retain(|id, _| !lost.contains(id));
        let present = sent.into_iter().map(|(id, _)| id).filter(|id| lost.contains(id));
        open.extend(present.map(|id| (id, MessageState::InInbox)));
        open.extend(restored_ids.iter().map(|id| (id.clone(), MessageState::Restored)));
        let note = (!restored_ids.is_empty()).then_some((to, JournalEntryKind::Restored(restored_ids)));
        team.append_to_journal(note.into_iter(), NoteAge::New)?;
        Ok(restored)
    }

    /// Counts that restored messages disappeared from the inbox `to` again, unless the inbox's
    /// reader has ever recorded a read. Returns true when the reader is first assumed to remove
    /// messages itself.
    fn count_removal(&mut self, to: &str) -> bool {
        if self.noting_inboxes.contains(to) {
            return false;
        }
        let count = self.removal_counts.entry(to.to_owned()).or_default();
        *count += 1;
        *count >= REMOVALS_UNTIL_READER && self.removing_inboxes.insert(to.to_owned())
    }

    /// If the current journal file has grown too large, renames it to replace the previous file.
    /// The next entry starts a new file. Before the rename, the entries of unread messages are
    /// copied from the previous to the current file, as far as they fit.
    fn rotate(&mut self, team: &Team) -> Result<(), Error> {
        let [before, Some(part)] = &self.files else { return Ok(()) };
        let limit =
            before.as_ref().map_or(0, |before| before.offset).clamp(ROTATE_BYTES, MAX_JOURNAL_BYTES / 2);
        if part.offset <= limit {
            return Ok(());
        }
        let Some(dir) = team.journal().existing_dir()? else { return Ok(()) };
        let taken = self.removing_inboxes.iter().map(|to| (to.clone(), JournalEntryKind::ReaderRemoves {}));
        team.append_to_journal(taken, NoteAge::CarriedOver)?;
        let bytes = read_file(dir, &previous_file_name(team.name()))?;
        let mut kept: Vec<JournalEntry> = parse_lines(&bytes).filter(|entry| self.is_unread(entry)).collect();
        // Entries that the previous file had copied from its own predecessor are older than its
        // other entries, so they come first.
        kept.sort_by_key(|entry| !entry.is_carried_over);
        team.append_to_journal(
            kept.into_iter().map(|entry| (entry.inbox_file, entry.kind)),
            NoteAge::CarriedOver,
        )?;
        dir.rename(&file_name(team.name()), &previous_file_name(team.name()))?;
        let [_, part] = std::mem::take(&mut self.files);
        self.files = [part, None];
        Ok(())
    }

    fn is_unread(&self, entry: &JournalEntry) -> bool {
        let open = |id: &String| self.unread.get(&entry.inbox_file).is_some_and(|open| open.contains_key(id));
        match &entry.kind {
            JournalEntryKind::Sent(message) => open(&message_id(message)),
            JournalEntryKind::Restored(ids) => ids.iter().any(open),
            JournalEntryKind::Read(_)
            | JournalEntryKind::ReaderRemoves {}
            | JournalEntryKind::NameReused {} => false,
        }
    }
}

/// Updates the state of the message in `entry` and returns its id. `None` if the message is read or
/// is not in `open`, the unread messages.
fn observe(open: &mut BTreeMap<String, MessageState>, entry: &InboxEntry) -> Option<String> {
    let id = entry_id(entry);
    let state = open.get_mut(&id)?;
    if entry.unread().is_none() {
        open.remove(&id);
        return None;
    }
    if *state == MessageState::NotSeen {
        *state = MessageState::InInbox;
    }
    Some(id)
}

/// The recorded messages of an inbox, in the order of the journal.
fn sent_messages(team: &Team, to: &str) -> Result<Vec<(String, Message)>, Error> {
    let sent =
        read_entries(team)?.into_iter().filter(|entry| entry.inbox_file == to).filter_map(
            |entry| match entry.kind {
                JournalEntryKind::Sent(message) => Some((message_id(&message), message)),
                _ => None,
            },
        );
    Ok(sent.collect())
}
