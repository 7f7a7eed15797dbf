//! What is new in an inbox since an earlier look. A file that only grew is read from where the last look ended;
//! any other is looked through from its start, and what was seen of it before is found again by its last entry. Only what
//! can't be made out for two seconds is read whole, to tell what it is.

use super::inbox_handle::Inbox;
use super::message_id::{entry_uuid, hash_bytes};
use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::file::{
    ArrayReadError, ArrayReader, FileVersion, HALF_WRITTEN_TIMEOUT, INBOX_LIMIT, JsonShape,
    UNLOCKED_ATTEMPTS, half_written_backoff, read_and_parse,
};
use protocol::message::InboxEntry;
use uuid::Uuid;

/// This many bytes before the end of the last entry must be what they were.
const FINGERPRINT_BYTES: usize = 512;
/// So often a file may be found changed amid a look through it.
const MAX_CHANGES: u32 = 4;
/// The bytes of a part, without the rest of its last entry.
const PART: usize = 256 << 10;

/// The new entries, and the mark behind them.
type NewEntries = (Vec<InboxEntry>, InboxCursor);

/// How far an inbox was looked through. It is small, and holds for this process alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxCursor {
    entry_count: usize,
    unread_count: usize,
    is_reset: bool,
    has_more: bool,
    /// Where the last entry ends, in bytes.
    end_offset: u64,
    /// What stands before that end.
    end_fingerprint: Uuid,
    /// What the last entry says, read or not.
    last_entry_id: Uuid,
    /// The file then; none where that can't tell whether it has changed.
    identity: Option<FileVersion>,
}

impl InboxCursor {
    /// How many entries there were.
    pub fn entry_count(&self) -> usize {
        self.entry_count
    }

    /// How many of them were unread.
    ///
    /// Exact but for one case: a writer that changes an entry in place and leaves all bytes after it where
    /// they were, between two looks that both find nothing but growth. Known writers spell `true` and
    /// `false`, which are not equally long.
    pub fn unread_count(&self) -> usize {
        self.unread_count
    }

    /// True if the inbox no longer began with what the mark before it had seen: entries were removed or
    /// rewritten, or the file. All that is there was handed out as new then.
    pub fn is_reset(&self) -> bool {
        self.is_reset
    }

    /// Of an inbox without entries.
    fn empty(began_again: bool) -> InboxCursor {
        let (window, last) = (Uuid::nil(), Uuid::nil());
        InboxCursor {
            entry_count: 0,
            unread_count: 0,
            is_reset: began_again,
            has_more: false,
            end_offset: 0,
            end_fingerprint: window,
            last_entry_id: last,
            identity: None,
        }
    }

    /// True if there is more in the inbox, of what is new: the look was for a part.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    fn count_entry(&mut self, entry: &InboxEntry) {
        self.entry_count += 1;
        self.unread_count += usize::from(entry.unread().is_some());
    }

    /// What comes behind it, up to `most` bytes and what they end in, and the mark after that.
    fn read_on(mut self, walk: &mut ArrayReader, most: usize) -> Result<NewEntries, ArrayReadError> {
        let (mut new, mut left) = (Vec::new(), most);
        self.has_more = false;
        while !self.has_more
            && let Some(raw) = walk.next()?
        {
            let entry = InboxEntry::parse(self.entry_count, raw);
            self.count_entry(&entry);
            left = left.saturating_sub(raw.len());
            self.has_more = left == 0;
            new.push(entry);
        }
        self.last_entry_id = new.last().map_or(self.last_entry_id, entry_uuid);
        self.end_offset = walk.end();
        self.end_fingerprint = hash_bytes(walk.bytes_before());
        let settled = walk.stable_version()?;
        self.identity = settled.filter(|_| !self.has_more);
        Ok((new, self))
    }

    /// The entries behind this mark, if the file is as it was or has only grown.
    fn read_appended(&self, dir: &DirHandle, name: &str, most: usize) -> Result<Option<NewEntries>, Error> {
        let same = InboxCursor { is_reset: self.is_reset && self.has_more, ..self.clone() };
        if self.identity.is_some() && FileVersion::stat_file(dir, name)? == self.identity {
            return Ok(Some((Vec::new(), same)));
        }
        let Some(mut walk) = open_reader(dir, name)? else { return Ok(None) };
        let is_it = walk.seek_after(self.end_offset).is_ok()
            && hash_bytes(walk.bytes_before()) == self.end_fingerprint;
        Ok(is_it.then(|| same.read_on(&mut walk, most).ok()).flatten())
    }
}

impl Inbox {
    /// The entries that are new since `mark` (none: all), and the mark for the next look.
    ///
    /// Costs what is new where the file only grew. Marking entries read moves all that follows, so it costs a
    /// whole look, in which the new ones are still told from the others. See `Mark::is_reset` for a file
    /// in which they can't be.
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn read_since(&self, mark: Option<&InboxCursor>) -> Result<(Vec<InboxEntry>, InboxCursor), Error> {
        self.read_new(mark, usize::MAX)
    }

    /// The same for whoever has little room: the first of what is new, 256 KiB of it and what they end in. The rest
    /// is new since the mark, which `is behind](Mark::is_behind).
    ///
    /// # Errors
    /// As [`Inbox::read`.
    pub fn read_chunk_since(
        &self,
        mark: Option<&InboxCursor>,
    ) -> Result<(Vec<InboxEntry>, InboxCursor), Error> {
        self.read_new(mark, PART)
    }

    /// What `step` makes of all entries, oldest first, a part of them in memory at a time.
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn fold<T: Default>(&self, mut step: impl FnMut(&mut T, InboxEntry)) -> Result<T, Error> {
        for _ in 0..UNLOCKED_ATTEMPTS {
            let (mut all, mut mark) = (T::default(), None);
            loop {
                let (new, next) = self.read_chunk_since(mark.as_ref())?;
                // Others have taken out what was looked at.
                if next.is_reset() {
                    break;
                }
                new.into_iter().for_each(|entry| step(&mut all, entry));
                if !next.has_more() {
                    return Ok(all);
                }
                mark = Some(next);
            }
        }
        let mut all = T::default();
        self.read()?.into_iter().for_each(|entry| step(&mut all, entry));
        Ok(all)
    }

    fn read_new(&self, mark: Option<&InboxCursor>, most: usize) -> Result<NewEntries, Error> {
        let mark = mark.filter(|mark| mark.entry_count > 0);
        let nothing = || Ok((Vec::new(), InboxCursor::empty(mark.is_some())));
        let Some(dir) = self.team.inboxes_dir()? else { return nothing() };
        let (mut pause, mut changes, mut last) = (None, 0, None);
        while changes < MAX_CHANGES {
            if let Some(mark) = mark
                && let Some(followed) = mark.read_appended(dir, &self.file, most)?
            {
                return Ok(followed);
            }
            let Some(mut walk) = open_reader(dir, &self.file)? else { break };
            if let Ok(looked) = read_from_start(mark, &mut walk, most) {
                return Ok(looked);
            }
            let now = FileVersion::stat_file(dir, &self.file)?;
            changes += u32::from(std::mem::replace(&mut last, now) != now);
            // Half written: to read all of it would show no more.
            let pause = match &mut pause {
                Some(pause) => pause,
                none => none.insert(half_written_backoff(dir, &self.file, HALF_WRITTEN_TIMEOUT)?),
            };
            if !pause.wait() {
                break;
            }
        }
        // Where it never stands still as long as a walk takes, or is for others to tell.
        let read =
            read_and_parse(self.team.io(), dir, &self.file, INBOX_LIMIT, HALF_WRITTEN_TIMEOUT, |text| {
                JsonShape::Array.check(text)
            })?;
        let Some((snapshot, ())) = read else { return nothing() };
        read_from_start(mark, &mut ArrayReader::from_snapshot(snapshot, FINGERPRINT_BYTES), most)
            .map_err(|ArrayReadError| Error::Contended(self.path()))
    }
}

/// What is new in a look at all of it: behind the last entry that `mark` has seen, or all, where that is not at its place.
fn read_from_start(
    mark: Option<&InboxCursor>,
    walk: &mut ArrayReader,
    most: usize,
) -> Result<NewEntries, ArrayReadError> {
    let Some(mark) = mark else { return InboxCursor::empty(false).read_on(walk, most) };
    let (mut at, mut last) = (InboxCursor::empty(mark.is_reset && mark.has_more), None);
    while at.entry_count < mark.entry_count
        && let Some(raw) = walk.next()?
    {
        let entry = InboxEntry::parse(at.entry_count, raw);
        at.count_entry(&entry);
        last = Some(entry);
    }
    if at.entry_count == mark.entry_count && last.as_ref().map(entry_uuid) == Some(mark.last_entry_id) {
        at.last_entry_id = mark.last_entry_id;
        return at.read_on(walk, most);
    }
    walk.rewind()?;
    InboxCursor::empty(true).read_on(walk, most)
}

/// At the start of the file; none where it is missing or too large, which is for others to tell.
fn open_reader(dir: &DirHandle, name: &str) -> Result<Option<ArrayReader>, Error> {
    Ok(ArrayReader::open(dir, name, FINGERPRINT_BYTES)?.filter(|walk| walk.size() <= INBOX_LIMIT))
}
