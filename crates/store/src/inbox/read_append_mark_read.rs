//! Reads an inbox and changes it: appends messages, restores lost ones, and marks entries read.

use super::inbox_handle::Inbox;
use super::insert_positions_of_lost_messages::missing_messages;
use super::tail_index::{EntryPosition, MIN_INDEXED_BYTES, TailIndex, TailPositions};
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape, modify_file, read_and_parse, sync_dir};
use crate::mkdir_lock::{Lock, LockState, lock_state};
use protocol::format_preserving_json;
use protocol::inbox_file::{
    InboxEntry, Message, parse_inbox, with_inserted, with_marked_read, with_messages,
};
use protocol::length_limits_of_texts::TextLimit;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

/// Maximum length of a message's text, in bytes.
pub const MESSAGE_LIMIT: usize = TextLimit::MESSAGE.max_bytes();
/// Maximum length of an answer's text, in bytes. It is high, because an answer repeats parts of the
/// request, and other programs can write requests of any length.
pub(crate) const ANSWER_LIMIT: usize = 16 << 20;

/// Which entries of an inbox are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntrySelection {
    /// All entries.
    All,
    /// Only the unread entries.
    Unread,
}

/// The last entries of an inbox.
#[derive(Debug, Default)]
pub struct LastEntries {
    /// Oldest first.
    pub entries: VecDeque<InboxEntry>,
    /// Number of unread entries in the whole inbox.
    pub unread: usize,
}

impl Inbox {
    /// All entries, oldest first. Empty if the file does not exist.
    pub fn read(&self) -> Result<Vec<InboxEntry>, Error> {
        let Some(dir) = self.team.inboxes_dir()? else { return Ok(Vec::new()) };
        let read =
            read_and_parse(self.team.io(), dir, &self.file, INBOX_LIMIT, HALF_WRITTEN_TIMEOUT, parse_inbox)?;
        Ok(read.map(|(_, entries)| entries).unwrap_or_default())
    }

    /// The state of the inbox's lock at this moment. Does not wait for the lock.
    ///
    /// # Errors
    /// `Io`, `UnexpectedFileType`.
    pub fn lock_state(&self) -> Result<LockState, Error> {
        self.team.inboxes_dir()?.map_or(Ok(LockState::Free), |dir| lock_state(dir, &self.file))
    }

    /// The unread entries, oldest first. In a long inbox, only the part of the file from the first
    /// unread entry on is read.
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn read_unread(&self) -> Result<Vec<InboxEntry>, Error> {
        self.fold_unread(|unread: &mut Vec<InboxEntry>, entry| unread.push(entry))
    }

    /// The number of unread entries. Only a part of the inbox is in memory at a time, as in
    /// [`Inbox::fold`].
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn count_unread(&self) -> Result<usize, Error> {
        self.fold_unread(|count: &mut usize, _| *count += 1)
    }

    /// The last `limit` entries of the selection (all or unread), oldest first, and the number of
    /// unread entries in the whole inbox. Only a part of the inbox is in memory at a time, as in
    /// [`Inbox::fold`].
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn read_last(&self, selection: EntrySelection, limit: usize) -> Result<LastEntries, Error> {
        let add = |result: &mut LastEntries, entry: InboxEntry| {
            let is_unread = entry.unread().is_some();
            result.unread += usize::from(is_unread);
            if is_unread || selection == EntrySelection::All {
                result.entries.push_back(entry);
            }
            if result.entries.len() > limit {
                result.entries.pop_front();
            }
        };
        match selection {
            EntrySelection::All => self.fold(add),
            EntrySelection::Unread => self.fold_unread(add),
        }
    }

    /// Applies `step` to all unread entries, oldest first, like [`Inbox::fold`].
    fn fold_unread<T: Default>(&self, mut step: impl FnMut(&mut T, InboxEntry)) -> Result<T, Error> {
        let tail = self.has_tail_index()?.then(|| TailIndex::read(self)).flatten();
        let tail = tail.map(|index| index.open_tail(self, |index| index.first_unread)).transpose()?.flatten();
        let Some(entries) = tail.and_then(|tail| tail.entries()) else {
            return self.fold(|result, entry| {
                if entry.unread().is_some() {
                    step(result, entry);
                }
            });
        };
        let mut result = T::default();
        let unread = entries.into_iter().filter(|entry| entry.unread().is_some());
        unread.for_each(|entry| step(&mut result, entry));
        Ok(result)
    }

    /// Appends a message, and creates the inbox file if it is missing. The durability of the root
    /// decides whether the message is on the disk when the call returns. In the session teams of
    /// Claude Code, appending is the only change that teamd makes.
    pub fn append(&self, message: &Message) -> Result<(), Error> {
        self.append_all(std::slice::from_ref(message))
    }

    /// Appends several messages in one step, like [`Inbox::append`]. Either all messages are
    /// stored, in their order, or none.
    pub fn append_all(&self, messages: &[Message]) -> Result<(), Error> {
        self.append_within(messages, MESSAGE_LIMIT)
    }

    /// Appends messages that came from another host, like [`Inbox::append_all`]. They may be
    /// answers to requests, so the higher limit for the text of answers applies.
    ///
    /// # Errors
    /// As [`Inbox::append`].
    pub fn append_received(&self, messages: &[Message]) -> Result<(), Error> {
        self.append_within(messages, ANSWER_LIMIT)
    }

    fn append_within(&self, messages: &[Message], limit: usize) -> Result<(), Error> {
        self.check_lengths(messages, limit)?;
        self.change_tail(
            |index| index.last_entry,
            |text, _| text_if_changed(text, with_messages(text, messages)?),
        )?;
        self.team.record_sent(&self.file, messages);
        Ok(())
    }

    fn check_lengths(&self, messages: &[Message], limit: usize) -> Result<(), Error> {
        if let Some(long) = messages.iter().find(|message| message.text.len() > limit) {
            let (size, limit) = (long.text.len() as u64, limit as u64);
            return Err(Error::TooLarge { path: self.path(), size, limit });
        }
        let summaries = messages.iter().filter_map(|message| message.summary.as_ref());
        Ok(TextLimit::MESSAGE_SUMMARY.check_all(summaries)?)
    }

    /// Appends a message, unless `is_needless` returns true for the current entries. Returns
    /// whether the message was appended.
    ///
    /// # Errors
    /// `TooLarge` if the text of the message is longer than `limit` bytes.
    pub(crate) fn append_unless(
        &self,
        message: &Message,
        limit: usize,
        is_needless: impl Fn(&[InboxEntry]) -> bool,
    ) -> Result<bool, Error> {
        self.check_lengths(std::slice::from_ref(message), limit)?;
        // `change` repeats the closure below if another program has changed the inbox meanwhile.
        // That program may have appended the same message, so the closure calls `is_needless` each
        // time.
        let is_appended = Cell::new(false);
        self.change(|text| {
            is_appended.set(!is_needless(&parse_inbox(text)?));
            if !is_appended.get() {
                return Ok(None);
            }
            text_if_changed(text, with_messages(text, std::slice::from_ref(message))?)
        })?;
        if is_appended.get() {
            self.team.record_sent(&self.file, std::slice::from_ref(message));
        }
        Ok(is_appended.get())
    }

    /// Restores lost messages. `sent` are all messages in the journal, and `lost` are the ids of
    /// those that are missing from the inbox. Each lost message is inserted at its old place, as
    /// far as the journal shows it. A message that is in the inbox again is skipped. Returns the
    /// inserted messages.
    pub(crate) fn restore(
        &self,
        sent: &[(String, Message)],
        lost: &BTreeSet<String>,
    ) -> Result<Vec<Message>, Error> {
        let restored = RefCell::new(Vec::new());
        self.change(|text| {
            let missing = missing_messages(sent, lost, &parse_inbox(text)?);
            restored.replace(missing.iter().map(|(_, message)| (*message).clone()).collect());
            text_if_changed(text, with_inserted(text, &missing)?)
        })?;
        Ok(restored.into_inner())
    }

    /// Marks entries read. The index of an entry may have changed, because other programs may have
    /// removed earlier entries. So each entry is recognized by its text. An entry that is no longer
    /// in the inbox is not an error.
    pub fn mark_read(&self, entries: &[InboxEntry]) -> Result<(), Error> {
        self.team.check_writable()?;
        self.team.record_read(&self.file, entries);
        self.change_tail(
            |index| index.first_unread,
            |text, before| {
                let current = parse_inbox(text)?;
                text_if_changed(text, with_marked_read(text, &current_positions(&current, entries, before))?)
            },
        )
    }

    /// Marks all entries read.
    pub fn mark_all_read(&self) -> Result<(), Error> {
        self.team.check_writable()?;
        self.team.record_name_reuse(&self.file);
        self.change(|text| {
            let unread: Vec<usize> = (0..parse_inbox(text)?.len()).collect();
            text_if_changed(text, with_marked_read(text, &unread)?)
        })
    }

    fn change(
        &self,
        edit: impl Fn(&str) -> Result<Option<String>, format_preserving_json::JsonError>,
    ) -> Result<(), Error> {
        let dir = self.team.create_inboxes_dir()?;
        let is_known = self.is_trackable(dir);
        // The tail index has the positions of the last entry and of the first unread entry. They
        // are computed together with the new text, usually before the lock is taken, so that the
        // lock is held only briefly. The index is written while the lock is held, so that it fits
        // the file.
        let positions: Cell<Option<TailPositions>> = Cell::new(None);
        let edit = |text: Option<&str>| {
            let new_text = edit(text.unwrap_or("[]"))?;
            positions.set(new_text.as_deref().filter(|_| is_known).and_then(TailPositions::in_file));
            Ok(Ok(new_text))
        };
        let write_index = |file| {
            if let Some(positions) = positions.get() {
                positions.with_file(file).write(self);
            }
        };
        modify_file(self.team.io(), dir, &self.file, None, JsonShape::Array, edit, write_index)
    }

    /// Changes the inbox like [`Inbox::change`], but if the inbox is long, only its tail from
    /// `start` on. `edit` gets the tail as a JSON array, and the number of entries before the tail.
    /// If the inbox is short, `edit` gets the whole inbox and 0.
    fn change_tail(
        &self,
        start: fn(&TailIndex) -> EntryPosition,
        edit: impl Fn(&str, usize) -> Result<Option<String>, format_preserving_json::JsonError>,
    ) -> Result<(), Error> {
        if self.has_tail_index()? && self.try_change_tail(start, &edit)? {
            return Ok(());
        }
        self.change(|text| edit(text, 0))
    }

    /// Tries to change only the tail, which is the end of the file. Returns false if the caller
    /// must change the whole inbox.
    ///
    /// A change that takes little time is made while the lock is held. Any other change is prepared
    /// without the lock, because other programs wait only briefly for the lock. If another program
    /// changes the inbox during the preparation, the change is made again, with the lock held from
    /// the start.
    fn try_change_tail(
        &self,
        start: fn(&TailIndex) -> EntryPosition,
        edit: impl Fn(&str, usize) -> Result<Option<String>, format_preserving_json::JsonError>,
    ) -> Result<bool, Error> {
        let dir = self.team.create_inboxes_dir()?;
        let read_index = || TailIndex::read(self).filter(|index| index.is_small(start));
        let Some(index) = read_index() else { return Ok(false) };
        if !index.is_cheap(self) && self.rewrite_tail(index, start, &edit, None)? {
            return Ok(true);
        }
        let lock = Lock::acquire(dir, &self.file)?;
        // An index that was written under the lock stays valid while the lock is held.
        read_index().map_or(Ok(false), |index| self.rewrite_tail(index, start, &edit, Some(lock)))
    }

    /// Rewrites the tail. Returns false if the file has changed since `index` was written, or if
    /// the new tail could not be put in place.
    fn rewrite_tail(
        &self,
        index: TailIndex,
        start: fn(&TailIndex) -> EntryPosition,
        edit: impl Fn(&str, usize) -> Result<Option<String>, format_preserving_json::JsonError>,
        lock: Option<Lock>,
    ) -> Result<bool, Error> {
        let Some(tail) = index.open_tail(self, start)? else { return Ok(false) };
        // If the tail can't be parsed, the change of the whole inbox reports the error.
        let Ok(new_text) = edit(&tail.text, tail.first_index()) else { return Ok(false) };
        let Some(new_text) = new_text else { return Ok(true) };
        if !tail.replace(self, lock, &new_text)? {
            return Ok(false);
        }
        sync_dir(self.team.create_inboxes_dir()?, self.team.io().durability)?;
        Ok(true)
    }

    /// Whether this inbox may have a tail index, with which a reader reads only the end of the
    /// file. False for inboxes of session teams: Claude Code rewrites each of them whole, which
    /// makes an index invalid. Also false on a file system where two changes can have the same
    /// timestamp, because the index could not show that the file has changed.
    fn is_trackable(&self, dir: &DirHandle) -> bool {
        !self.team.name().is_claude_session() && dir.has_multigrain_timestamps()
    }

    /// Whether the inbox may have a tail index and is long enough for one.
    fn has_tail_index(&self) -> Result<bool, Error> {
        let Some(dir) = self.team.inboxes_dir()?.filter(|dir| self.is_trackable(dir)) else {
            return Ok(false);
        };
        Ok(dir.stat(&self.file)?.is_some_and(|stat| stat.st_size.unsigned_abs() >= MIN_INDEXED_BYTES))
    }
}

fn text_if_changed(
    text: &str,
    new_text: String,
) -> Result<Option<String>, format_preserving_json::JsonError> {
    Ok((new_text != text).then_some(new_text))
}

/// Finds the entries `wanted` in `current`, the end of an inbox, and returns their indexes in
/// `current`. `before` is the number of entries that precede `current` in the inbox.
///
/// An entry is found by its text. If another program reformatted the text, the entry is found by
/// its message id. Two wanted entries with the same text get two different indexes.
fn current_positions(current: &[InboxEntry], wanted: &[InboxEntry], before: usize) -> Vec<usize> {
    let has_text = |index: usize, entry: &InboxEntry| {
        current.get(index).is_some_and(|candidate| candidate.raw == entry.raw)
    };
    let unmoved_index =
        |entry: &InboxEntry| entry.index.checked_sub(before).filter(|index| has_text(*index, entry));
    let mut found: BTreeSet<usize> = wanted.iter().filter_map(unmoved_index).collect();
    for entry in wanted.iter().filter(|entry| unmoved_index(entry).is_none()) {
        let is_free = |index: &usize| !found.contains(index);
        let same_text = (0..current.len()).find(|index| is_free(index) && has_text(*index, entry));
        let same_message =
            || (0..current.len()).find(|index| is_free(index) && is_same_message(&current[*index], entry));
        found.extend(same_text.or_else(same_message));
    }
    found.into_iter().collect()
}

fn is_same_message(first: &InboxEntry, second: &InboxEntry) -> bool {
    let (Ok(first), Ok(second)) = (&first.message, &second.message) else { return false };
    (&first.from, &first.timestamp, &first.text) == (&second.from, &second.timestamp, &second.text)
}
