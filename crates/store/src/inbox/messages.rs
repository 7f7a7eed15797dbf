//! The messages of an inbox: reads, appends, restores them, and marks them read.

use super::inbox_handle::Inbox;
use super::restore::missing_messages;
use super::tail_index::{EntryPosition, MIN_INDEXED_BYTES, TailIndex, TailPositions};
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::{
    HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape, modify_file, read_and_parse, stamps_are_fine, sync_dir,
};
use crate::lock::{Lock, LockState, lock_state};
use protocol::json;
use protocol::message::{InboxEntry, Message, parse_inbox, with_inserted, with_marked_read, with_messages};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

/// The longest text of a message, in bytes.
pub const MESSAGE_LIMIT: usize = 256 << 10;
/// The same of an answer, which holds what was asked: other programs ask at any length.
pub(crate) const ANSWER_LIMIT: usize = 16 << 20;

impl Inbox {
    /// All entries, oldest first; none if nobody ever wrote to it.
    pub fn read(&self) -> Result<Vec<InboxEntry>, Error> {
        let Some(dir) = self.team.inboxes_dir()? else { return Ok(Vec::new()) };
        let read =
            read_and_parse(self.team.io(), dir, &self.file, INBOX_LIMIT, HALF_WRITTEN_TIMEOUT, parse_inbox)?;
        Ok(read.map(|(_, entries)| entries).unwrap_or_default())
    }

    /// How its lock stands; nothing is waited for.
    ///
    /// # Errors
    /// `Io`, `Odd`.
    pub fn lock_state(&self) -> Result<LockState, Error> {
        self.team.inboxes_dir()?.map_or(Ok(LockState::Free), |dir| lock_state(dir, &self.file))
    }

    /// The entries that nobody has read, oldest first; as [`Inbox::read`], at the cost of these and what came after them.
    pub fn read_unread(&self) -> Result<Vec<InboxEntry>, Error> {
        let end = self.has_tail_index()?.then(|| TailIndex::read(self)).flatten();
        let end = end.map(|cut| cut.open_tail(self, |cut| cut.first_unread)).transpose()?.flatten();
        let entries = end.and_then(|end| end.entries()).map_or_else(|| self.read(), Ok)?;
        Ok(entries.into_iter().filter(|entry| entry.unread().is_some()).collect())
    }

    /// Adds a message at the end; the first one makes the file. On return it is stored, as the durability
    /// asks. This alone is also allowed in a team of Claude Code's.
    pub fn append(&self, message: &Message) -> Result<(), Error> {
        self.append_all(std::slice::from_ref(message))
    }

    /// Adds messages at the end in one step: all are there, in their order, or none is. Else as
    /// [`Inbox::append`].
    pub fn append_all(&self, messages: &[Message]) -> Result<(), Error> {
        self.check_lengths(messages, MESSAGE_LIMIT)?;
        self.change_tail(
            |cut| cut.last_entry,
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
        Ok(())
    }

    /// Adds a message of `limit` bytes at most at the end, unless what is there by then makes it needless; whether it
    /// did.
    pub(crate) fn append_unless(
        &self,
        message: &Message,
        limit: usize,
        is_needless: impl Fn(&[InboxEntry]) -> bool,
    ) -> Result<bool, Error> {
        self.check_lengths(std::slice::from_ref(message), limit)?;
        // Decided anew each time that the change is built: others may have been faster.
        let written = Cell::new(false);
        self.change(|text| {
            written.set(!is_needless(&parse_inbox(text)?));
            if !written.get() {
                return Ok(None);
            }
            text_if_changed(text, with_messages(text, std::slice::from_ref(message))?)
        })?;
        if written.get() {
            self.team.record_sent(&self.file, std::slice::from_ref(message));
        }
        Ok(written.get())
    }

    /// Puts those of `sent` that are `lost` where they were, as far as that can be told: before what was sent later.
    /// Those that are not there by then anyway; these are returned.
    pub(crate) fn restore(
        &self,
        sent: &[(String, Message)],
        lost: &BTreeSet<String>,
    ) -> Result<Vec<Message>, Error> {
        let put = RefCell::new(Vec::new());
        self.change(|text| {
            let missing = missing_messages(sent, lost, &parse_inbox(text)?);
            put.replace(missing.iter().map(|(_, message)| (*message).clone()).collect());
            text_if_changed(text, with_inserted(text, &missing)?)
        })?;
        Ok(put.into_inner())
    }

    /// Marks these entries read. Each is known by its spelling, first at its place, then anywhere: others
    /// may have removed some before it. One that is gone is fine.
    pub fn mark_read(&self, entries: &[InboxEntry]) -> Result<(), Error> {
        self.team.check_writable()?;
        self.team.record_read(&self.file, entries);
        self.change_tail(
            |cut| cut.first_unread,
            |text, before| {
                let current = parse_inbox(text)?;
                text_if_changed(text, with_marked_read(text, &current_positions(&current, entries, before))?)
            },
        )
    }

    /// Marks all that is unread read, for a name that is used again.
    pub fn mark_all_read(&self) -> Result<(), Error> {
        self.team.check_writable()?;
        self.team.record_name_reuse(&self.file);
        self.change(|text| {
            let unread: Vec<usize> = (0..parse_inbox(text)?.len()).collect();
            text_if_changed(text, with_marked_read(text, &unread)?)
        })
    }

    fn change(&self, edit: impl Fn(&str) -> Result<Option<String>, json::JsonError>) -> Result<(), Error> {
        let dir = self.team.create_inboxes_dir()?;
        let is_known = self.is_trackable(dir);
        // Looked for before the lock is taken, and noted under it: or others would have changed the file by then, and whoever
        // comes next would read all of it, and note as late.
        let ends = Cell::new(None);
        let edit = |text: Option<&str>| {
            let edited = edit(text.unwrap_or("[]"))?;
            ends.set(edited.as_deref().filter(|_| is_known).and_then(TailPositions::in_file));
            Ok(Ok(edited))
        };
        let note =
            |known| ends.get().into_iter().for_each(|ends: TailPositions| ends.with_file(known).write(self));
        modify_file(self.team.io(), dir, &self.file, None, JsonShape::Array, edit, note)
    }

    /// As [`Inbox::change`], for an `edit` that needs only the end of a long inbox, from an entry on: it gets a text
    /// that begins there, and how many entries stand before.
    fn change_tail(
        &self,
        from: fn(&TailIndex) -> EntryPosition,
        edit: impl Fn(&str, usize) -> Result<Option<String>, json::JsonError>,
    ) -> Result<(), Error> {
        if self.has_tail_index()? && self.try_change_tail(from, &edit)? {
            return Ok(());
        }
        self.change(|text| edit(text, 0))
    }

    /// Whether it could be done in this way. What takes long is built before the lock is taken, since others may not wait
    /// for it; but under it where somebody was faster, or all who send at once would build in vain.
    fn try_change_tail(
        &self,
        from: fn(&TailIndex) -> EntryPosition,
        edit: impl Fn(&str, usize) -> Result<Option<String>, json::JsonError>,
    ) -> Result<bool, Error> {
        let dir = self.team.create_inboxes_dir()?;
        let noted = || TailIndex::read(self).filter(|cut| cut.is_small(from));
        let Some(cut) = noted() else { return Ok(false) };
        if !cut.is_cheap(self) && self.rewrite_tail(cut, from, &edit, None)? {
            return Ok(true);
        }
        let lock = Lock::acquire(dir, &self.file)?;
        // What was noted under the lock is true under it.
        noted().map_or(Ok(false), |cut| self.rewrite_tail(cut, from, &edit, Some(lock)))
    }

    /// Whether it was still what it was.
    fn rewrite_tail(
        &self,
        cut: TailIndex,
        from: fn(&TailIndex) -> EntryPosition,
        edit: impl Fn(&str, usize) -> Result<Option<String>, json::JsonError>,
        lock: Option<Lock>,
    ) -> Result<bool, Error> {
        let Some(end) = cut.open_tail(self, from)? else { return Ok(false) };
        // What does not parse is the other way's to tell.
        let Ok(after) = edit(&end.text, end.first_index()) else { return Ok(false) };
        let Some(after) = after else { return Ok(true) };
        if !end.replace(self, lock, &after)? {
            return Ok(false);
        }
        sync_dir(self.team.create_inboxes_dir()?, self.team.io().durability)?;
        Ok(true)
    }

    /// Whether anything can be known of it from one change to the next: nothing of a session's, whose program writes it
    /// whole, nor where stamps don't tell everything.
    fn is_trackable(&self, dir: &DirHandle) -> bool {
        !self.team.name().is_claude_session() && stamps_are_fine(dir)
    }

    /// Whether it may have an end that was noted.
    fn has_tail_index(&self) -> Result<bool, Error> {
        let Some(dir) = self.team.inboxes_dir()?.filter(|dir| self.is_trackable(dir)) else {
            return Ok(false);
        };
        Ok(dir.stat(&self.file)?.is_some_and(|stat| stat.st_size.unsigned_abs() >= MIN_INDEXED_BYTES))
    }
}

fn text_if_changed(before: &str, after: String) -> Result<Option<String>, json::JsonError> {
    Ok((after != before).then_some(after))
}

/// Where in `current`, which has `before` others before it, each of `wanted` is now; two that are spelled alike take two
/// places. One that somebody has spelled anew is known by what it says.
fn current_positions(current: &[InboxEntry], wanted: &[InboxEntry], before: usize) -> Vec<usize> {
    let is = |index: usize, entry: &InboxEntry| current.get(index).is_some_and(|at| at.raw == entry.raw);
    let there = |entry: &InboxEntry| entry.index.checked_sub(before).filter(|index| is(*index, entry));
    let mut taken: BTreeSet<usize> = wanted.iter().filter_map(there).collect();
    for entry in wanted.iter().filter(|entry| there(entry).is_none()) {
        let free = |at: &usize| !taken.contains(at);
        let spelled = (0..current.len()).find(|at| free(at) && is(*at, entry));
        let says = || (0..current.len()).find(|at| free(at) && is_same_message(&current[*at], entry));
        taken.extend(spelled.or_else(says));
    }
    taken.into_iter().collect()
}

fn is_same_message(one: &InboxEntry, other: &InboxEntry) -> bool {
    let (Ok(one), Ok(other)) = (&one.message, &other.message) else { return false };
    (&one.from, &one.timestamp, &one.text) == (&other.from, &other.timestamp, &other.text)
}
