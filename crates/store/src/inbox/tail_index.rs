//! Where a long inbox may be taken up: what a change of its end, and a look at what is unread, need not read again. Noted
//! outside the root by whoever changes the inbox; whoever finds the file to be another one than it was
//! left reads it whole.

use super::inbox_handle::Inbox;
use crate::error::Error;
use crate::file::{KnownFile, LongFile, SwapOutcome};
use crate::lock::Lock;
use protocol::json::{Array, Object};
use protocol::message::InboxEntry;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use uuid::Uuid;

/// Shorter inboxes are quicker to read than to take up, in bytes.
pub(super) const MIN_INDEXED_BYTES: u64 = 16 << 10;
/// A longer end is prepared without the lock, as a short inbox is, in bytes.
const MAX_TAIL_BYTES: u64 = 64 << 10;
/// The bytes of a note, more than it can need: one that is written while another reads it never has the rest of a longer
/// one behind it.
const PADDED_INDEX_BYTES: usize = 1024;

/// The end of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TailIndex {
    #[serde(rename = "known")]
    file: KnownFile,
    /// The last entry.
    #[serde(rename = "last")]
    pub(super) last_entry: EntryPosition,
    /// All entries before it are read.
    #[serde(rename = "unread")]
    pub(super) first_unread: EntryPosition,
}

/// Where an entry begins, with the comma before it behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryPosition {
    /// In bytes.
    offset: u64,
    /// So many entries stand before it.
    #[serde(rename = "entries")]
    index: usize,
}

impl EntryPosition {
    const START: EntryPosition = EntryPosition { offset: 0, index: 0 };
}

/// An inbox without its first entries, as a text of its own.
pub(super) struct InboxTail<'d> {
    file: LongFile<'d>,
    index: TailIndex,
    position: EntryPosition,
    /// A bracket in place of all before.
    pub(super) text: String,
}

/// What of a cut stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TailPositions {
    last: EntryPosition,
    unread: EntryPosition,
}

impl TailPositions {
    /// None of a short text.
    pub(super) fn in_file(text: &str) -> Option<TailPositions> {
        if (text.len() as u64) < MIN_INDEXED_BYTES {
            return None;
        }
        let (last, unread) = find_positions(text, EntryPosition::START, None)?;
        Some(TailPositions { last, unread })
    }

    /// In the file that was put in place.
    pub(super) fn with_file(self, known: KnownFile) -> TailIndex {
        TailIndex { file: known, last_entry: self.last, first_unread: self.unread }
    }
}

impl TailIndex {
    /// What `inbox` is known to be since the last change; none if that is nothing, or can't be trusted.
    pub(super) fn read(inbox: &Inbox) -> Option<TailIndex> {
        let bytes = inbox.team.journal().read_tail_index(inbox.team.name(), &inbox.file)?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let (sum, note) = text.trim_end().split_once(' ')?;
        (sum == checksum(note)?).then(|| serde_json::from_str(note).ok())?
    }

    /// Whether from one of its places on it is little: what is done to an end is done under the lock, which others may not
    /// wait for.
    pub(super) fn is_small(&self, from: fn(&TailIndex) -> EntryPosition) -> bool {
        self.file.size().saturating_sub(from(self).offset) <= MAX_TAIL_BYTES
    }

    /// Whether a change from one of its places on costs next to nothing, so that it is built under the lock at once, where
    /// all who send queue.
    pub(super) fn is_cheap(&self, inbox: &Inbox) -> bool {
        self.file.is_cheap(inbox.team.io().durability)
    }

    /// Notes it for the next. Without it the next one reads all, so it is left out where it can't be written.
    pub(super) fn write(&self, inbox: &Inbox) {
        let Ok(note) = serde_json::to_string(self) else { return };
        let Some(sum) = checksum(&note) else { return };
        let line = format!("{:PADDED_INDEX_BYTES$}\n", format!("{sum} {note}"));
        inbox.team.journal().write_tail_index(inbox.team.name(), &inbox.file, line.as_bytes()).ok();
    }

    /// The end of `inbox` from one of its places on, if it is still what it was.
    pub(super) fn open_tail<'i>(
        self,
        inbox: &'i Inbox,
        from: fn(&TailIndex) -> EntryPosition,
    ) -> Result<Option<InboxTail<'i>>, Error> {
        let Some(dir) = inbox.team.inboxes_dir()? else { return Ok(None) };
        let Some(long) = LongFile::open(dir, &inbox.file, self.file)? else { return Ok(None) };
        let place = from(&self);
        let text = long.read_tail(place.offset)?.map(|end| format!("[{end}"));
        Ok(text.map(|text| InboxTail { file: long, index: self, position: place, text }))
    }
}

impl InboxTail<'_> {
    /// How many entries stand before it.
    pub(super) fn first_index(&self) -> usize {
        self.position.index
    }

    /// Its entries, numbered as in the whole; none if it is not what an end is.
    pub(super) fn entries(&self) -> Option<Vec<InboxEntry>> {
        let array = Array::parse(&self.text).ok()?;
        let entries = (self.position.index..).zip(array.elements());
        Some(entries.map(|(at, element)| InboxEntry::parse(at, element.get())).collect())
    }

    /// Puts `after` in its place, under the inbox's lock, and notes what is known then; false where that can't be done.
    pub(super) fn replace(self, inbox: &Inbox, early: Option<Lock>, after: &str) -> Result<bool, Error> {
        let Some((last, unread)) = find_positions(after, self.position, Some(self.index.first_unread)) else {
            return Ok(false);
        };
        let texts = (&self.text[1..], &after[1..]);
        // Whoever has lost the lock meanwhile makes nothing more.
        if early.as_ref().is_some_and(|lock| !matches!(lock.is_ours(), Ok(true))) {
            return Ok(false);
        }
        let Some(own) = self.file.stage_tail(inbox.team.io(), self.position.offset, texts)? else {
            return Ok(false);
        };
        let lock = early.map_or_else(|| self.file.lock(), Ok)?;
        match self.file.swap_in(&own, &lock)? {
            SwapOutcome::Rejected => return Ok(false),
            SwapOutcome::Done(Some(known)) => {
                TailIndex { file: known, last_entry: last, first_unread: unread }.write(inbox);
            }
            SwapOutcome::Done(None) => {}
        }
        Ok(true)
    }
}

/// The last entry of a text that begins at `from`, and the first that may be unread: no earlier one than `unread` is.
fn find_positions(
    text: &str,
    from: EntryPosition,
    unread: Option<EntryPosition>,
) -> Option<(EntryPosition, EntryPosition)> {
    let array = Array::parse(text).ok()?;
    let parts: Vec<usize> = array.element_starts().collect();
    // A bracket of ours stands before an end, and is no byte of the file.
    let shift = u64::from(from != EntryPosition::START);
    let place =
        |at: usize| EntryPosition { offset: from.offset + parts[at] as u64 - shift, index: from.index + at };
    let last = parts.len().checked_sub(1)?;
    let is_unread = |at: &usize| is_unread(array.elements()[*at].get());
    let first = match unread {
        Some(unread) if unread.index < from.index => unread,
        _ => place((0..last).find(is_unread).unwrap_or(last)),
    };
    Some((place(last), first))
}

/// Whatever can be marked read and is not, whether it is a message or not.
fn is_unread(raw: &str) -> bool {
    Object::parse(raw).is_ok_and(|object| object.get("read").is_none_or(|read| read.get() != "true"))
}

/// Of this boot alone: a power cut may leave a file its length and stamps, and not its bytes. None where nobody says which
/// boot it is.
fn checksum(note: &str) -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok());
    let text = format!("{}{note}", boot.as_ref()?);
    Some(Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string())
}
