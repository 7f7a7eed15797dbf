//! Index of the end of a long inbox file. With the index, an append or a search for unread entries
//! reads only the end of the file.
//!
//! teamd's programs write a new index after each change of the inbox. The index is stored next to
//! the journal, outside the team files. Other programs change the inbox without a new index, so a
//! reader checks the index before each use. The file must still have the inode, size and timestamps
//! that the index names. A missing or invalid index is no error: the reader then reads the whole
//! inbox.
//!
//! After a power loss a file can keep its size and timestamps and lose its bytes. So an index is
//! valid only until the next boot.

use super::inbox_handle::Inbox;
use crate::error::Error;
use crate::file_io::{KnownFile, LongFile, SwapOutcome};
use crate::mkdir_lock::Lock;
use protocol::format_preserving_json::{Array, Object};
use protocol::inbox_file::InboxEntry;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use uuid::Uuid;

/// Minimum size of an inbox that gets an index, in bytes. Reading a smaller inbox whole is faster.
pub(super) const MIN_INDEXED_BYTES: u64 = 16 << 10;
/// Maximum length of a tail (the end of an inbox file) that is replaced alone, in bytes. If the
/// tail is longer, the whole inbox is rewritten. That takes longer, but the lock is usually held
/// only during the final rename.
const MAX_TAIL_BYTES: u64 = 64 << 10;
/// Size of an index file without its line feed, in bytes. Every index is padded with spaces to this
/// size. So a reader never sees the end of an older, longer index while a new index is being
/// written.
const PADDED_INDEX_BYTES: usize = 1024;

/// Where the last entry and the first possibly unread entry of an inbox file begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TailIndex {
    /// The version of the file that this index describes.
    file: KnownFile,
    pub(super) last_entry: EntryPosition,
    /// No entry before this one is unread. If no entry is unread, this is the last entry.
    pub(super) first_unread: EntryPosition,
}

/// Where an entry begins in an inbox file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryPosition {
    /// Offset of the first byte after the `[` or `,` before the entry, in bytes.
    offset: u64,
    /// Number of entries before this one.
    index: usize,
}

impl EntryPosition {
    const START: EntryPosition = EntryPosition { offset: 0, index: 0 };
}

/// The entries of an inbox from one position on.
pub(super) struct InboxTail<'d> {
    file: LongFile<'d>,
    index: TailIndex,
    position: EntryPosition,
    /// `[` and the file's bytes from `position` on. A JSON array, if the file is one.
    pub(super) text: String,
}

/// The positions of a [`TailIndex`] whose file version is not known yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct TailPositions {
    last_entry: EntryPosition,
    first_unread: EntryPosition,
}

impl TailPositions {
    /// Finds the positions of the last entry and of the first unread entry in the text of a whole
    /// inbox. `None` if the text is too short for an index, empty, or not a JSON array.
    pub(super) fn in_file(text: &str) -> Option<TailPositions> {
        if (text.len() as u64) < MIN_INDEXED_BYTES {
            return None;
        }
        let (last_entry, first_unread) = find_positions(text, EntryPosition::START, None)?;
        Some(TailPositions { last_entry, first_unread })
    }

    pub(super) fn with_file(self, file: KnownFile) -> TailIndex {
        TailIndex { file, last_entry: self.last_entry, first_unread: self.first_unread }
    }
}

impl TailIndex {
    /// Reads the index of `inbox`. `None` if there is no index or its checksum is wrong.
    pub(super) fn read(inbox: &Inbox) -> Option<TailIndex> {
        let bytes = inbox.team.journal().read_tail_index(inbox.team.name(), &inbox.file)?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let (stored_checksum, json) = text.trim_end().split_once(' ')?;
        (stored_checksum == checksum(json)?).then(|| serde_json::from_str(json).ok())?
    }

    /// Whether the tail that begins at `from` is short enough to be replaced while the lock is
    /// held. Replacing a longer tail would hold the lock for too long, because other programs wait
    /// only briefly for a lock.
    pub(super) fn is_small(&self, from: fn(&TailIndex) -> EntryPosition) -> bool {
        self.file.size().saturating_sub(from(self).offset) <= MAX_TAIL_BYTES
    }

    /// Whether the next change is cheap: it copies only a tail and does not wait for the disk. The
    /// caller may hold the lock during a cheap change.
    pub(super) fn is_cheap(&self, inbox: &Inbox) -> bool {
        self.file.is_cheap(inbox.team.io().durability)
    }

    /// Writes this index to its file. A failure is ignored: without an index, the next reader reads
    /// the whole inbox.
    pub(super) fn write(&self, inbox: &Inbox) {
        let Ok(json) = serde_json::to_string(self) else { return };
        let Some(stored_checksum) = checksum(&json) else { return };
        let line = format!("{:PADDED_INDEX_BYTES$}\n", format!("{stored_checksum} {json}"));
        inbox.team.journal().write_tail_index(inbox.team.name(), &inbox.file, line.as_bytes()).ok();
    }

    /// Opens the tail of `inbox` that begins at `from`. `None` if the file has changed since this
    /// index was written.
    pub(super) fn open_tail<'i>(
        self,
        inbox: &'i Inbox,
        from: fn(&TailIndex) -> EntryPosition,
    ) -> Result<Option<InboxTail<'i>>, Error> {
        let Some(dir) = inbox.team.inboxes_dir()? else { return Ok(None) };
        let Some(long) = LongFile::open(dir, &inbox.file, self.file)? else { return Ok(None) };
        let position = from(&self);
        let text = long.read_tail(position.offset)?.map(|end| format!("[{end}"));
        Ok(text.map(|text| InboxTail { file: long, index: self, position, text }))
    }
}

impl InboxTail<'_> {
    /// Number of entries in the inbox before this tail.
    pub(super) fn first_index(&self) -> usize {
        self.position.index
    }

    /// The entries of the tail, with their indexes in the whole inbox. `None` if the tail is not a
    /// JSON array.
    pub(super) fn entries(&self) -> Option<Vec<InboxEntry>> {
        let array = Array::parse(&self.text).ok()?;
        let entries = (self.position.index..).zip(array.elements());
        Some(entries.map(|(at, element)| InboxEntry::parse(at, element.get())).collect())
    }

    /// Replaces the tail by `after`, a JSON array, and writes the new index. Returns false if
    /// nothing was changed.
    ///
    /// `lock` is the inbox's lock if the caller already holds it. Otherwise this method takes the
    /// lock only while the new tail is put in place.
    ///
    /// # Errors
    /// `Io`, and `Locked` if another program holds the lock. The inbox is unchanged in both cases.
    pub(super) fn replace(self, inbox: &Inbox, lock: Option<Lock>, after: &str) -> Result<bool, Error> {
        let Some((last_entry, first_unread)) =
            find_positions(after, self.position, Some(self.index.first_unread))
        else {
            return Ok(false);
        };
        let texts = (&self.text[1..], &after[1..]);
        // If this process was stopped for more than ten seconds, another program may have
        // considered the lock stale and taken it. If so, this process must not change the inbox.
        if lock.as_ref().is_some_and(|lock| !matches!(lock.is_ours(), Ok(true))) {
            return Ok(false);
        }
        let Some(staged) = self.file.stage_tail(inbox.team.io(), self.position.offset, texts)? else {
            return Ok(false);
        };
        let lock = lock.map_or_else(|| self.file.lock(), Ok)?;
        match self.file.swap_in(&staged, &lock)? {
            SwapOutcome::Rejected => return Ok(false),
            SwapOutcome::Done(Some(known)) => {
                TailIndex { file: known, last_entry, first_unread }.write(inbox);
            }
            // The change is stored. Without the file's new version there is no index for it.
            SwapOutcome::Done(None) => {}
        }
        Ok(true)
    }
}

/// Finds the positions of the last entry and of the first unread entry after a change of the inbox.
/// `text` is the new tail, which begins at `tail_start`. `first_unread` is the first unread entry
/// before the change. If that entry lies before the tail, the change did not touch it, and it is
/// still the first unread entry.
fn find_positions(
    text: &str,
    tail_start: EntryPosition,
    first_unread: Option<EntryPosition>,
) -> Option<(EntryPosition, EntryPosition)> {
    let array = Array::parse(text).ok()?;
    let starts: Vec<usize> = array.element_starts().collect();
    // The text of a tail begins with a `[` that is not in the file.
    let shift = u64::from(tail_start != EntryPosition::START);
    let position = |index: usize| EntryPosition {
        offset: tail_start.offset + starts[index] as u64 - shift,
        index: tail_start.index + index,
    };
    let last_entry = starts.len().checked_sub(1)?;
    let is_unread = |index: &usize| is_unread(array.elements()[*index].get());
    let unread_position = match first_unread {
        Some(first_unread) if first_unread.index < tail_start.index => first_unread,
        _ => position((0..last_entry).find(is_unread).unwrap_or(last_entry)),
    };
    Some((position(last_entry), unread_position))
}

/// Whether an element counts as an unread entry: a JSON object whose `read` is not `true`, even if
/// the object is not a valid message.
fn is_unread(raw: &str) -> bool {
    Object::parse(raw).is_ok_and(|object| object.get("read").is_none_or(|read| read.get() != "true"))
}

/// Checksum of an index, valid until the next boot. `None` if the system has no boot id.
fn checksum(json: &str) -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| platform::system().pid_origin().boot_id);
    let text = format!("{}{json}", boot.as_ref()?);
    Some(Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string())
}
