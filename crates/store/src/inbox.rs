//! Everything sent to one agent. A send is one append, once and in order; what others wrote is not touched.
//! Reading takes no lock: at every instant the file is a complete array, or a foreign writer's that is waited
//! for.

mod cursor;
mod tail_index;

pub use cursor::InboxCursor;

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::{
    HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape, modify_file, read_and_parse, stamps_are_fine, sync_dir,
};
use crate::lock::{Lock, LockState, lock_state};
use crate::team::Team;
use protocol::json;
use protocol::message::{InboxEntry, Message, parse_inbox, with_inserted, with_marked_read, with_messages};
use protocol::name::AgentName;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use tail_index::{EntryPosition, TailIndex, TailPositions};
use uuid::Uuid;

/// The longest text of a message, in bytes.
pub const MESSAGE_LIMIT: usize = 256 << 10;
/// The same of an answer, which holds what was asked: other programs ask at any length.
pub(crate) const ANSWER_LIMIT: usize = 16 << 20;

/// An agent's inbox.
#[derive(Debug, Clone)]
pub struct Inbox {
    team: Team,
    file: String,
}

impl Inbox {
    pub(crate) fn new(team: Team, name: &AgentName) -> Inbox {
        Inbox { team, file: format!("{}.json", name.file_stem()) }
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// The name of its file.
    pub(crate) fn file_name(&self) -> &str {
        &self.file
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.team.dir().join(crate::team::INBOXES_DIR).join(&self.file)
    }

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
        self.team.journal().record_sent(&self.team, &self.file, messages);
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
            self.team.journal().record_sent(&self.team, &self.file, std::slice::from_ref(message));
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
        self.team.journal().record_read(&self.team, &self.file, entries);
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
        self.team.journal().record_name_reuse(&self.team, &self.file);
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
        Ok(dir
            .stat(&self.file)?
            .is_some_and(|stat| stat.st_size.unsigned_abs() >= tail_index::MIN_INDEXED_BYTES))
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

/// What of `sent` is lost and not there, each with its place: before what was noted later, and among what its own sender
/// sent where it was sent. Who has stored something may note it long after: until then its time says what it comes behind.
fn missing_messages<'m>(
    sent: &'m [(String, Message)],
    lost: &BTreeSet<String>,
    there: &[InboxEntry],
) -> Vec<(usize, &'m Message)> {
    let ids: Vec<String> = there.iter().map(|entry| entry_uuid(entry).simple().to_string()).collect();
    let places: BTreeMap<&String, usize> = ids.iter().enumerate().map(|(at, id)| (id, at)).collect();
    let noted: BTreeSet<&String> = sent.iter().map(|(id, _)| id).collect();
    let mut not_noted: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, entry) in there.iter().enumerate().filter(|(at, _)| !noted.contains(&ids[*at])) {
        let message = entry.message.as_ref().ok();
        message.iter().for_each(|it| not_noted.entry(&it.from).or_default().push((at, &it.timestamp)));
    }
    let later = |message: &Message, from: usize| {
        let hers = not_noted.get(message.from.as_str()).map_or(&[][..], Vec::as_slice);
        let mut behind = hers[hers.partition_point(|(at, _)| *at < from)..].iter();
        behind.find(|(_, time)| *time >= message.timestamp.as_str()).map_or(there.len(), |(at, _)| *at)
    };
    let mut behind: BTreeMap<&str, usize> = BTreeMap::new();
    let mut missing = BTreeMap::new();
    for (at, ((id, message), ahead)) in
        sent.iter().zip(next_positions(sent, &places, there.len())).enumerate()
    {
        let first = behind.entry(&message.from).or_default();
        if let Some(place) = places.get(id) {
            *first = (*first).max(place + 1);
        } else if lost.contains(id) {
            let hers = ahead.same_sender.min(later(message, *first));
            missing.insert((ahead.any_sender.max(*first).min(hers), at), (id, message));
        }
    }
    let mut seen = BTreeSet::new();
    let once = missing.into_iter().filter(|(_, (id, _))| seen.insert(*id));
    once.map(|((place, _), (_, message))| (place, message)).collect()
}

/// The first place of what was noted after a message: of all, and of what its sender sent.
struct NextPositions {
    any_sender: usize,
    same_sender: usize,
}

/// For each of `sent`; where nothing came after, the `end`.
fn next_positions(
    sent: &[(String, Message)],
    places: &BTreeMap<&String, usize>,
    end: usize,
) -> Vec<NextPositions> {
    let (mut noted, mut hers) = (end, BTreeMap::<&str, usize>::new());
    let mut all = Vec::with_capacity(sent.len());
    for (id, message) in sent.iter().rev() {
        let first = hers.entry(&message.from).or_insert(end);
        all.push(NextPositions { any_sender: noted, same_sender: *first });
        if let Some(place) = places.get(id) {
            (noted, *first) = (noted.min(*place), (*first).min(*place));
        }
    }
    all.reverse();
    all
}

fn is_same_message(one: &InboxEntry, other: &InboxEntry) -> bool {
    let (Ok(one), Ok(other)) = (&one.message, &other.message) else { return false };
    (&one.from, &one.timestamp, &one.text) == (&other.from, &other.timestamp, &other.text)
}

/// What an entry says, whether it was read or not: being read alone does not make it another.
pub(crate) fn entry_uuid(entry: &InboxEntry) -> Uuid {
    match &entry.message {
        Ok(message) => message_uuid(message),
        Err(_) => hash_bytes(entry.raw.as_bytes()),
    }
}

/// What tells a message from others, whoever spells it, and whether it is read or not: the same for each copy of one
/// that went to several.
pub fn message_id(message: &Message) -> String {
    message_uuid(message).simple().to_string()
}

/// The same of a message.
pub(crate) fn message_uuid(message: &Message) -> Uuid {
    hash_bytes(format!("{:?}", (&message.from, &message.timestamp, &message.text)).as_bytes())
}

fn hash_bytes(bytes: &[u8]) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn entry(message: &Message) -> InboxEntry {
        InboxEntry::parse(0, &serde_json::to_string(message).unwrap())
    }

    #[test]
    fn what_its_sender_has_not_noted_yet_stays_behind_what_is_put_back() {
        let message =
            |from: &str, text: &str, at| Message::new(&AgentName::new_unchecked(from), text.to_owned(), at);
        let sent: Vec<_> = [message("a", "1", 1), message("b", "2", 2), message("a", "3", 3)]
            .map(|message| (message_id(&message), message))
            .into();
        let lost = sent[2..].iter().map(|(id, _)| id.clone()).collect();
        let early = message("a", "long ago", 0);
        for (next, place) in [(message("a", "4", 3), 3), (message("c", "4", 4), 4)] {
            let there = [&early, &sent[0].1, &sent[1].1, &next].map(entry);
            let missing = missing_messages(&sent, &lost, &there);
            assert_eq!(missing.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [place], "{next:?}");
        }
    }

    #[test]
    fn what_is_put_back_is_looked_for_once_and_not_for_each() {
        let message =
            |n: usize| Message::new(&AgentName::new_unchecked(&format!("s{}", n % 4)), n.to_string(), 1);
        let sent: Vec<(String, Message)> =
            (0..20_000).map(message).map(|message| (message_id(&message), message)).collect();
        let lost = sent.iter().map(|(id, _)| id.clone()).collect();
        let there: Vec<InboxEntry> = sent.iter().step_by(1_000).map(|(_, message)| entry(message)).collect();
        let begun = Instant::now();
        let missing = missing_messages(&sent, &lost, &there);
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let texts: Vec<&str> = missing.iter().map(|(_, message)| message.text.as_str()).collect();
        let expected = (0..20_000).filter(|n| n % 1_000 != 0).map(|n: usize| n.to_string());
        assert_eq!(texts, expected.collect::<Vec<_>>());
        assert!(missing.iter().all(|(at, message)| at - 1 == message.text.parse::<usize>().unwrap() / 1_000));
    }
}
