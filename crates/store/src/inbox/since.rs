//! What is new in an inbox since an earlier look. A file that only grew is read from where the last look ended;
//! any other is read whole, and what was seen of it before is found again by its last entry.

use super::{Inbox, digest, said};
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{INBOX_LIMIT, Identity, PATIENCE, Tail, read_as, read_tail};
use protocol::json;
use protocol::message::Entry;
use uuid::Uuid;

/// This many bytes before the end of the last entry must be what they were.
const WINDOW: usize = 512;

/// How far an inbox was looked through. It is small, and holds for this process alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    entries: usize,
    unread: usize,
    began_again: bool,
    /// Where the last entry ends, in bytes.
    end: u64,
    /// What stands before that end, and how many bytes of it.
    window: (Uuid, usize),
    /// What the last entry says, read or not.
    last: Uuid,
    /// The file then; none where that can't tell whether it has changed.
    identity: Option<Identity>,
}

impl Mark {
    /// How many entries there were.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// How many of them were unread.
    ///
    /// Exact but for one case: a writer that changes an entry in place and leaves all bytes after it where
    /// they were, between two looks that both find nothing but growth. Known writers spell `true` and
    /// `false`, which are not equally long.
    pub fn unread(&self) -> usize {
        self.unread
    }

    /// True if the inbox no longer began with what the mark before it had seen: entries were removed or
    /// rewritten, or the file. All that is there was handed out as new then.
    pub fn began_again(&self) -> bool {
        self.began_again
    }

    /// Of an inbox without entries.
    fn empty(began_again: bool) -> Mark {
        let window = (Uuid::nil(), 0);
        Mark { entries: 0, unread: 0, began_again, end: 0, window, last: Uuid::nil(), identity: None }
    }

    /// The mark after `new` ones, whose last ends at the end of `before`.
    fn moved(&self, new: &[Entry], end: u64, before: &[u8]) -> Mark {
        let shown = &before[before.len().saturating_sub(WINDOW)..];
        Mark {
            entries: self.entries + new.len(),
            unread: self.unread + new.iter().filter(|entry| entry.unread().is_some()).count(),
            end,
            window: (digest(shown), shown.len()),
            last: new.last().map_or(self.last, said),
            ..self.clone()
        }
    }

    /// The entries behind this mark, if the file is as it was or has only grown.
    fn follow(&self, dir: &Directory, name: &str) -> Result<Option<(Vec<Entry>, Mark)>, Error> {
        let same = Mark { began_again: false, ..self.clone() };
        if self.identity.is_some() && Identity::at(dir, name)? == self.identity {
            return Ok(Some((Vec::new(), same)));
        }
        let (digested, length) = self.window;
        let from = self.end.saturating_sub(length as u64);
        let Some(Tail { bytes, settled }) = read_tail(dir, name, from, INBOX_LIMIT)? else { return Ok(None) };
        if bytes.len() <= length || digest(&bytes[..length]) != digested {
            return Ok(None);
        }
        let Some((new, more)) = grown(&bytes[length..], self.entries) else { return Ok(None) };
        let mark = same.moved(&new, self.end + more as u64, &bytes[..length + more]);
        Ok(Some((new, Mark { identity: settled, ..mark })))
    }

    /// Which of all `entries` this mark has seen: none if its last one is not where it was.
    fn seen(&self, entries: &[Entry]) -> Option<usize> {
        let at = self.entries.checked_sub(1)?;
        (entries.get(at).map(said) == Some(self.last)).then_some(self.entries)
    }
}

impl Inbox {
    /// The entries that are new since `mark` (none: all), and the mark for the next look.
    ///
    /// Costs what is new where the file only grew. Marking entries read moves all that follows, so it costs a
    /// whole look, in which the new ones are still told from the others. See [`Mark::began_again`] for a file
    /// in which they can't be.
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn since(&self, mark: Option<&Mark>) -> Result<(Vec<Entry>, Mark), Error> {
        let lost = mark.is_some_and(|mark| mark.entries > 0);
        let Some(dir) = self.team.inboxes()? else { return Ok((Vec::new(), Mark::empty(lost))) };
        if let Some(mark) = mark.filter(|mark| mark.entries > 0)
            && let Some(followed) = mark.follow(dir, &self.file)?
        {
            return Ok(followed);
        }
        let read = read_as(self.team.way(), dir, &self.file, INBOX_LIMIT, PATIENCE, whole)?;
        let Some((snapshot, (mut entries, end))) = read else { return Ok((Vec::new(), Mark::empty(lost))) };
        let seen = mark.and_then(|mark| mark.seen(&entries));
        let before = snapshot.text().as_bytes().get(..end).unwrap_or_default();
        let now = Mark::empty(lost && seen.is_none()).moved(&entries, end as u64, before);
        Ok((entries.split_off(seen.unwrap_or(0)), Mark { identity: snapshot.settled(), ..now }))
    }
}

/// All entries, and where the last one ends.
fn whole(text: &str) -> Result<(Vec<Entry>, usize), json::Error> {
    let array = json::Array::parse(text)?;
    let entries = array.elements().iter().enumerate().map(|(at, element)| Entry::of(at, element.get()));
    Ok((entries.collect(), array.last_end().unwrap_or(0)))
}

/// The entries in what follows the `before` first ones up to the end of the file, and how many bytes on the
/// last of them ends; none if it is not what an append leaves.
fn grown(rest: &[u8], before: usize) -> Option<(Vec<Entry>, usize)> {
    let rest = std::str::from_utf8(rest).ok()?;
    let next = rest.find(|c: char| !matches!(c, ' ' | '\t' | '\n' | '\r'))?;
    if rest[next..].trim_end() == "]" {
        return Some((Vec::new(), 0));
    }
    let text = format!("[{}", rest[next..].strip_prefix(',')?);
    let array = json::Array::parse(&text).ok()?;
    let entries = array.elements().iter().enumerate().map(|(at, raw)| Entry::of(before + at, raw.get()));
    Some((entries.collect(), next + array.last_end()?))
}
