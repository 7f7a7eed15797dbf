//! Reads the entries that were added to an inbox since an earlier read. If the file has only grown,
//! reading continues where the last read ended. Otherwise the file is read from its start, to find
//! the entry that the earlier read returned last.
//!
//! The file is read in parts, to save memory. If the file can't be parsed, for example because
//! another program is writing it, the reader tries again for about two seconds. Then it reads the
//! whole file at once. This last read succeeds or reports the error.

use super::inbox_handle::Inbox;
use super::message_id::{entry_uuid, hash_bytes};
use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::file_io::{
    ArrayReadError, ArrayReader, FileVersion, HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape,
    UNLOCKED_ATTEMPTS, half_written_backoff, read_and_parse,
};
use protocol::inbox_file::InboxEntry;
use uuid::Uuid;

/// Number of bytes before a cursor that are hashed, to check later that they are unchanged.
const FINGERPRINT_BYTES: usize = 512;
/// Number of changes of the file during a read, after which the file is read whole.
const MAX_CHANGES: u32 = 4;
/// Size in bytes of a chunk of new entries. The last entry of a chunk may go beyond it.
const CHUNK_BYTES: usize = 256 << 10;

/// New entries, and the cursor after them.
type NewEntries = (Vec<InboxEntry>, InboxCursor);

/// How far an inbox has been read. A cursor is small and valid in this process only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxCursor {
    entry_count: usize,
    unread_count: usize,
    is_reset: bool,
    has_more: bool,
    /// Offset of the end of the last entry, in bytes.
    end_offset: u64,
    /// Hash of the bytes before `end_offset`.
    end_fingerprint: Uuid,
    /// Id of the last entry. Marking the entry read does not change the id.
    last_entry_id: Uuid,
    /// The file's version. `None` if it can't show whether the file has changed.
    version: Option<FileVersion>,
}

impl InboxCursor {
    /// Number of entries before the cursor.
    pub fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// Number of unread entries before the cursor, which is the position where the last read ended.
    ///
    /// Marking an entry read changes the length of the entry (`false` becomes `true`), so all later
    /// bytes move. A later read notices this and counts again. A program that changed a read flag
    /// without changing the length would make the count wrong, but no known program does so.
    pub fn unread_count(&self) -> usize {
        self.unread_count
    }

    /// Whether the read started again at the first entry and returned all entries as new. The inbox
    /// then no longer begins with the entries of the earlier read: some were removed or rewritten,
    /// or the file was replaced.
    pub fn is_reset(&self) -> bool {
        self.is_reset
    }

    /// The cursor of an inbox without entries.
    fn empty() -> InboxCursor {
        let (end_fingerprint, last) = (Uuid::nil(), Uuid::nil());
        InboxCursor {
            entry_count: 0,
            unread_count: 0,
            is_reset: false,
            has_more: false,
            end_offset: 0,
            end_fingerprint,
            last_entry_id: last,
            version: None,
        }
    }

    /// Whether the inbox has more new entries, because only a chunk was read.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    fn count_entry(&mut self, entry: &InboxEntry) {
        self.entry_count += 1;
        self.unread_count += usize::from(entry.unread().is_some());
    }

    /// Reads the entries after this cursor. Stops at the end of the entry that reaches `max_bytes`,
    /// or at the end of the inbox. Also returns the cursor after the entries that were read.
    fn read_on(mut self, reader: &mut ArrayReader, max_bytes: usize) -> Result<NewEntries, ArrayReadError> {
        let (mut entries, mut bytes_left) = (Vec::new(), max_bytes);
        self.has_more = false;
        while !self.has_more
            && let Some(raw) = reader.next()?
        {
            let entry = InboxEntry::parse(self.entry_count, raw);
            self.count_entry(&entry);
            bytes_left = bytes_left.saturating_sub(raw.len());
            self.has_more = bytes_left == 0;
            entries.push(entry);
        }
        self.last_entry_id = entries.last().map_or(self.last_entry_id, entry_uuid);
        self.end_offset = reader.end();
        self.end_fingerprint = hash_bytes(reader.bytes_before());
        let stable_version = reader.stable_version()?;
        self.version = stable_version.filter(|_| !self.has_more);
        Ok((entries, self))
    }

    /// Reads the entries after this cursor. `None` if the file has changed other than by growth.
    fn read_appended(
        &self,
        dir: &DirHandle,
        name: &str,
        max_bytes: usize,
    ) -> Result<Option<NewEntries>, Error> {
        let unchanged = InboxCursor { is_reset: self.is_reset && self.has_more, ..self.clone() };
        if self.version.is_some() && FileVersion::stat_file(dir, name)? == self.version {
            return Ok(Some((Vec::new(), unchanged)));
        }
        let Some(mut reader) = open_reader(dir, name)? else { return Ok(None) };
        let is_unmoved = reader.seek_after(self.end_offset).is_ok()
            && hash_bytes(reader.bytes_before()) == self.end_fingerprint;
        Ok(is_unmoved.then(|| unchanged.read_on(&mut reader, max_bytes).ok()).flatten())
    }
}

impl Inbox {
    /// Reads the entries that were added since `cursor`, and returns the cursor for the next read.
    /// With `None` as the cursor, reads all entries.
    ///
    /// If the file has only grown, the cost depends on the new entries alone. If entries were
    /// marked read, the bytes after them have moved. The next call then reads the whole file, and
    /// still finds which entries are new. If the last entry of the earlier read is no longer at its
    /// index, all entries count as new and the new cursor [is reset](InboxCursor::is_reset).
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn read_since(&self, cursor: Option<&InboxCursor>) -> Result<(Vec<InboxEntry>, InboxCursor), Error> {
        self.read_new(cursor, usize::MAX)
    }

    /// Reads new entries like [`Inbox::read_since`], but at most 256 KiB, rounded up to the end of
    /// an entry. If the inbox has more new entries, the new cursor [has
    /// more](InboxCursor::has_more).
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn read_chunk_since(
        &self,
        cursor: Option<&InboxCursor>,
    ) -> Result<(Vec<InboxEntry>, InboxCursor), Error> {
        self.read_new(cursor, CHUNK_BYTES)
    }

    /// Applies `step` to all entries, oldest first. Normally, at most 256 KiB of entries are in
    /// memory at a time. If other programs keep rewriting the inbox, all entries are read at once.
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn fold<T: Default>(&self, mut step: impl FnMut(&mut T, InboxEntry)) -> Result<T, Error> {
        for _ in 0..UNLOCKED_ATTEMPTS {
            let (mut result, mut cursor) = (T::default(), None);
            loop {
                let (entries, next_cursor) = self.read_chunk_since(cursor.as_ref())?;
                // A reset cursor means that another program has removed or rewritten entries that
                // `step` has already processed. Then everything is read again from the first entry.
                if next_cursor.is_reset() {
                    break;
                }
                entries.into_iter().for_each(|entry| step(&mut result, entry));
                if !next_cursor.has_more() {
                    return Ok(result);
                }
                cursor = Some(next_cursor);
            }
        }
        let mut result = T::default();
        self.read()?.into_iter().for_each(|entry| step(&mut result, entry));
        Ok(result)
    }

    fn read_new(&self, cursor: Option<&InboxCursor>, max_bytes: usize) -> Result<NewEntries, Error> {
        let cursor = cursor.filter(|cursor| cursor.entry_count > 0);
        let no_entries =
            || Ok((Vec::new(), InboxCursor { is_reset: cursor.is_some(), ..InboxCursor::empty() }));
        let Some(dir) = self.team.inboxes_dir()? else { return no_entries() };
        let (mut backoff, mut changes, mut last_version) = (None, 0, None);
        while changes < MAX_CHANGES {
            if let Some(cursor) = cursor
                && let Some(appended) = cursor.read_appended(dir, &self.file, max_bytes)?
            {
                return Ok(appended);
            }
            let Some(mut reader) = open_reader(dir, &self.file)? else { break };
            if let Ok(entries) = read_from_start(cursor, &mut reader, max_bytes) {
                return Ok(entries);
            }
            let version = FileVersion::stat_file(dir, &self.file)?;
            changes += u32::from(std::mem::replace(&mut last_version, version) != version);
            // The file may be half-written. Reading the whole file would return no more entries.
            let backoff = match &mut backoff {
                Some(backoff) => backoff,
                none => none.insert(half_written_backoff(dir, &self.file, HALF_WRITTEN_TIMEOUT)?),
            };
            if !backoff.wait() {
                break;
            }
        }
        // The file could not be read in chunks, because it changes too fast or its content is
        // invalid. So the whole file is read at once, which succeeds or reports the error.
        let snapshot =
            read_and_parse(self.team.io(), dir, &self.file, INBOX_LIMIT, HALF_WRITTEN_TIMEOUT, |text| {
                JsonShape::Array.check(text)
            })?;
        let Some((snapshot, ())) = snapshot else { return no_entries() };
        read_from_start(cursor, &mut ArrayReader::from_snapshot(snapshot, FINGERPRINT_BYTES), max_bytes)
            .map_err(|ArrayReadError| Error::Contended(self.path()))
    }
}

/// Reads the file from its start and returns the entries after `cursor`. If the last entry before
/// `cursor` is no longer at its index, returns all entries.
fn read_from_start(
    cursor: Option<&InboxCursor>,
    reader: &mut ArrayReader,
    max_bytes: usize,
) -> Result<NewEntries, ArrayReadError> {
    let Some(cursor) = cursor else { return InboxCursor::empty().read_on(reader, max_bytes) };
    let (mut position, mut last_entry) =
        (InboxCursor { is_reset: cursor.is_reset && cursor.has_more, ..InboxCursor::empty() }, None);
    while position.entry_count < cursor.entry_count
        && let Some(raw) = reader.next()?
    {
        let entry = InboxEntry::parse(position.entry_count, raw);
        position.count_entry(&entry);
        last_entry = Some(entry);
    }
    if position.entry_count == cursor.entry_count
        && last_entry.as_ref().map(entry_uuid) == Some(cursor.last_entry_id)
    {
        position.last_entry_id = cursor.last_entry_id;
        return position.read_on(reader, max_bytes);
    }
    reader.rewind()?;
    InboxCursor { is_reset: true, ..InboxCursor::empty() }.read_on(reader, max_bytes)
}

/// Opens the file at its start. `None` if the file is missing or too large. The caller then reads
/// the whole file in the usual way, which returns the error for a file that is too large.
fn open_reader(dir: &DirHandle, name: &str) -> Result<Option<ArrayReader>, Error> {
    Ok(ArrayReader::open(dir, name, FINGERPRINT_BYTES)?.filter(|reader| reader.size() <= INBOX_LIMIT))
}
