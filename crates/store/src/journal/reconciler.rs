//! The journal, held against the inboxes: which acknowledged messages nobody has had yet, and which of them are gone.
//!
//! For the one who puts back, the daemon. What it remembers is small: the messages stay in the files. It alone begins
//! the file anew, carrying over what is still open.

use super::entry::{JournalEntry, JournalEntryKind, entry_id, message_id, parse_lines, read_file};
use super::notes::{NoteAge, inboxes_generation, read_entries};
use super::storage::{MAX_JOURNAL_BYTES, file_name, previous_file_name};
use crate::error::Error;
use crate::inbox::Inbox;
use crate::team::Team;
use protocol::message::{InboxEntry, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// A file is begun anew beyond this many bytes, or beyond what the one before it had, and long before it is full.
const ROTATE_BYTES: u64 = 256 << 10;
/// So many are remembered that were read before their sender had noted them.
const MAX_EARLY_READS: usize = 1_024;
/// As often as that something that was put back may go again before it is its reader who takes it.
const REMOVALS_UNTIL_READER: u32 = 3;

/// Who reads an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReaderKind {
    /// Our own feed alone, which notes what it has handed over.
    OwnDelivery,
    /// Maybe a program of its own, which may take out what it has had.
    ForeignProgram,
}

/// What a look found, since the look before.
#[derive(Debug, Clone, Copy)]
pub enum InboxChange<'e> {
    /// These more, and all that was there before as it was.
    Appended(&'e [InboxEntry]),
    /// Something else changed, too, or it was the first.
    Rewritten,
}

/// How a message that nobody has had yet was seen last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageState {
    /// Noted, and not found yet.
    NotSeen,
    /// In its inbox, unread.
    InInbox,
    /// Missing, and put back.
    Restored,
}

/// What is open of one team's acknowledged messages, by the inbox's file and the message's id; held by the one process
/// that puts back. `InboxReconciler::follow` takes in what was noted, `InboxReconciler::settle` compares it with an inbox.
#[derive(Debug, Default)]
pub struct InboxReconciler {
    files: [Option<JournalFile>; 2],
    unread: BTreeMap<String, BTreeMap<String, MessageState>>,
    /// Inboxes whose reader takes out what it has had.
    removing_inboxes: BTreeSet<String>,
    /// How often something had gone again from inboxes whose reader has never noted what it had.
    removal_counts: BTreeMap<String, u32>,
    /// Inboxes whose reader has.
    noting_inboxes: BTreeSet<String>,
    early_reads: VecDeque<String>,
}

/// A file of notes, as far as it was read.
#[derive(Debug)]
struct JournalFile {
    file: File,
    offset: u64,
}

impl JournalFile {
    /// What has come since, whole lines alone; none if the file is gone.
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
    /// Takes in what was noted since the last call. Before an inbox is read: then what was noted is in there, or lost.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn read_journal(&mut self, team: &Team) -> Result<(), Error> {
        let (Some(dir), Some(of)) = (team.journal().existing_dir()?, inboxes_generation(team)?) else {
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
            let mut lines: Vec<JournalEntry> =
                parse_lines(&more.unwrap_or_default()).filter(|line| line.generation == of).collect();
            lines.sort_by_key(|line| !line.is_carried_over);
            lines.into_iter().for_each(|line| self.apply(line));
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

    /// The inboxes, by the names of their files, in which something was not found yet that was noted.
    pub fn inboxes_with_unseen(&self) -> Vec<String> {
        let unseen =
            self.unread.iter().filter(|(_, open)| open.values().any(|open| *open == MessageState::NotSeen));
        unseen.map(|(to, _)| to.clone()).collect()
    }

    /// Nothing is ever put back into this inbox.
    pub fn stop_restoring(&mut self, inbox: &Inbox) {
        self.unread.remove(inbox.file_name());
    }

    /// Holds what was noted against what a look found, and puts back what is gone that its owner has not had; what that
    /// was. Each is put back once.
    ///
    /// # Errors
    /// Those of a change: it is tried again then at the next call.
    pub fn reconcile(
        &mut self,
        inbox: &Inbox,
        looked: InboxChange<'_>,
        reader: ReaderKind,
    ) -> Result<Vec<Message>, Error> {
        let Some(open) = self.unread.get_mut(inbox.file_name()).filter(|open| !open.is_empty()) else {
            return Ok(Vec::new());
        };
        if let InboxChange::Appended(new) = looked {
            new.iter().for_each(|entry| drop(observe(open, entry)));
            if open.values().all(|open| *open != MessageState::NotSeen) {
                return Ok(Vec::new());
            }
        }
        let there = inbox.fold(|there: &mut BTreeSet<String>, entry| there.extend(observe(open, &entry)))?;
        let gone: BTreeSet<String> = open.keys().filter(|id| !there.contains(*id)).cloned().collect();
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        // So that it is looked for again if that fails.
        open.iter_mut()
            .filter(|(id, open)| **open == MessageState::InInbox && gone.contains(*id))
            .for_each(|(_, open)| *open = MessageState::NotSeen);
        // Its owner may have had it since the journal was read, and somebody taken it out.
        self.read_journal(inbox.team())?;
        let lost = self.find_lost(inbox, &gone, reader)?;
        if lost.is_empty() { Ok(Vec::new()) } else { self.restore(inbox, &lost) }
    }

    /// Which of those that are `gone` are to come back; the others are nobody's concern from now on.
    fn find_lost(
        &mut self,
        inbox: &Inbox,
        gone: &BTreeSet<String>,
        reader: ReaderKind,
    ) -> Result<BTreeSet<String>, Error> {
        let (to, team) = (inbox.file_name(), inbox.team());
        let is_again = |open: &BTreeMap<String, MessageState>| {
            gone.iter().any(|id| open.get(id) == Some(&MessageState::Restored))
        };
        let again = self.unread.get(to).is_some_and(is_again);
        if again && reader == ReaderKind::ForeignProgram && self.count_removal(to) {
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
        // Until it is done, so that it is not forgotten if it can't be.
        let again = lost.iter().map(|id| (id.clone(), MessageState::NotSeen));
        self.unread.entry(to.clone()).or_default().extend(again);
        let noted = sent_messages(team, &to)?;
        let put = inbox.restore(&noted, lost)?;
        let back: Vec<String> = put.iter().map(message_id).collect();
        let open = self.unread.entry(to.clone()).or_default();
        // What there was no room to carry over is known to nobody any more.
        open.retain(|id, _| !lost.contains(id));
        let held = noted.into_iter().map(|(id, _)| id).filter(|id| lost.contains(id));
        open.extend(held.map(|id| (id, MessageState::InInbox)));
        open.extend(back.iter().map(|id| (id.clone(), MessageState::Restored)));
        let note = (!back.is_empty()).then_some((to, JournalEntryKind::Restored(back)));
        team.append_to_journal(note.into_iter(), NoteAge::New)?;
        Ok(put)
    }

    /// Counts that something had gone again; whether that makes it known that the inbox's reader takes out what it has had.
    fn count_removal(&mut self, to: &str) -> bool {
        if self.noting_inboxes.contains(to) {
            return false;
        }
        let doubts = self.removal_counts.entry(to.to_owned()).or_default();
        *doubts += 1;
        *doubts >= REMOVALS_UNTIL_READER && self.removing_inboxes.insert(to.to_owned())
    }

    /// Puts a file aside that has grown, and with it the one before; what of that is open is written anew, as far as
    /// there is room.
    fn rotate(&mut self, team: &Team) -> Result<(), Error> {
        let [before, Some(part)] = &self.files else { return Ok(()) };
        let grown =
            before.as_ref().map_or(0, |before| before.offset).clamp(ROTATE_BYTES, MAX_JOURNAL_BYTES / 2);
        if part.offset <= grown {
            return Ok(());
        }
        let Some(dir) = team.journal().existing_dir()? else { return Ok(()) };
        let taken = self.removing_inboxes.iter().map(|to| (to.clone(), JournalEntryKind::ReaderRemoves {}));
        team.append_to_journal(taken, NoteAge::CarriedOver)?;
        let bytes = read_file(dir, &previous_file_name(team.name()))?;
        let mut kept: Vec<JournalEntry> = parse_lines(&bytes).filter(|line| self.is_unread(line)).collect();
        // What that one had got from the one before it stands behind what was noted in it.
        kept.sort_by_key(|line| !line.is_carried_over);
        team.append_to_journal(
            kept.into_iter().map(|line| (line.inbox_file, line.kind)),
            NoteAge::CarriedOver,
        )?;
        dir.rename(&file_name(team.name()), &previous_file_name(team.name()))?;
        let [_, part] = std::mem::take(&mut self.files);
        self.files = [part, None];
        Ok(())
    }

    fn is_unread(&self, line: &JournalEntry) -> bool {
        let open = |id: &String| self.unread.get(&line.inbox_file).is_some_and(|open| open.contains_key(id));
        match &line.kind {
            JournalEntryKind::Sent(message) => open(&message_id(message)),
            JournalEntryKind::Restored(ids) => ids.iter().any(open),
            JournalEntryKind::Read(_)
            | JournalEntryKind::ReaderRemoves {}
            | JournalEntryKind::NameReused {} => false,
        }
    }
}

/// What is there is there, and what is read there is nobody's to put back. Its id, if it is open.
fn observe(open: &mut BTreeMap<String, MessageState>, entry: &InboxEntry) -> Option<String> {
    let id = entry_id(entry);
    let seen = open.get_mut(&id)?;
    if entry.unread().is_none() {
        open.remove(&id);
        return None;
    }
    if *seen == MessageState::NotSeen {
        *seen = MessageState::InInbox;
    }
    Some(id)
}

/// What was sent to an inbox, in the order in which it was noted.
fn sent_messages(team: &Team, to: &str) -> Result<Vec<(String, Message)>, Error> {
    let sent = read_entries(team)?.into_iter().filter(|line| line.inbox_file == to).filter_map(|line| {
        match line.kind {
            JournalEntryKind::Sent(message) => Some((message_id(&message), message)),
            _ => None,
        }
    });
    Ok(sent.collect())
}
