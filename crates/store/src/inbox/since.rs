//! What is new in an inbox since an earlier look. A file that only grew is read from where the last look ended;
//! any other is looked through from its start, and what was seen of it before is found again by its last entry. Only what
//! can't be made out for two seconds is read whole, to tell what it is.

use super::{Inbox, digest, said};
use crate::directory::Directory;
use crate::error::Error;
use crate::file::{INBOX_LIMIT, Identity, OPTIMISTIC, Odd, PATIENCE, Shape, Walk, half_written, read_as};
use protocol::message::InboxEntry;
use uuid::Uuid;

/// This many bytes before the end of the last entry must be what they were.
const WINDOW: usize = 512;
/// So often a file may be found changed amid a look through it.
const CHANGES: u32 = 4;
/// The bytes of a part, without the rest of its last entry.
const PART: usize = 256 << 10;

/// The new entries, and the mark behind them.
type Looked = (Vec<InboxEntry>, Mark);

/// How far an inbox was looked through. It is small, and holds for this process alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    entries: usize,
    unread: usize,
    began_again: bool,
    behind: bool,
    /// Where the last entry ends, in bytes.
    end: u64,
    /// What stands before that end.
    window: Uuid,
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
        let (window, last) = (Uuid::nil(), Uuid::nil());
        Mark { entries: 0, unread: 0, began_again, behind: false, end: 0, window, last, identity: None }
    }

    /// True if there is more in the inbox, of what is new: the look was for a part.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    fn count(&mut self, entry: &InboxEntry) {
        self.entries += 1;
        self.unread += usize::from(entry.unread().is_some());
    }

    /// What comes behind it, up to `most` bytes and what they end in, and the mark after that.
    fn go_on(mut self, walk: &mut Walk, most: usize) -> Result<Looked, Odd> {
        let (mut new, mut left) = (Vec::new(), most);
        self.behind = false;
        while !self.behind
            && let Some(raw) = walk.next()?
        {
            let entry = InboxEntry::parse(self.entries, raw);
            self.count(&entry);
            left = left.saturating_sub(raw.len());
            self.behind = left == 0;
            new.push(entry);
        }
        self.last = new.last().map_or(self.last, said);
        self.end = walk.end();
        self.window = digest(walk.before());
        let settled = walk.settled()?;
        self.identity = settled.filter(|_| !self.behind);
        Ok((new, self))
    }

    /// The entries behind this mark, if the file is as it was or has only grown.
    fn follow(&self, dir: &Directory, name: &str, most: usize) -> Result<Option<Looked>, Error> {
        let same = Mark { began_again: self.began_again && self.behind, ..self.clone() };
        if self.identity.is_some() && Identity::at(dir, name)? == self.identity {
            return Ok(Some((Vec::new(), same)));
        }
        let Some(mut walk) = walked(dir, name)? else { return Ok(None) };
        let is_it = walk.skip_to(self.end).is_ok() && digest(walk.before()) == self.window;
        Ok(is_it.then(|| same.go_on(&mut walk, most).ok()).flatten())
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
    pub fn since(&self, mark: Option<&Mark>) -> Result<(Vec<InboxEntry>, Mark), Error> {
        self.look(mark, usize::MAX)
    }

    /// The same for whoever has little room: the first of what is new, 256 KiB of it and what they end in. The rest
    /// is new since the mark, which [is behind](Mark::is_behind).
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn part_since(&self, mark: Option<&Mark>) -> Result<(Vec<InboxEntry>, Mark), Error> {
        self.look(mark, PART)
    }

    /// What `step` makes of all entries, oldest first, a part of them in memory at a time.
    ///
    /// # Errors
    /// As [`Inbox::read`].
    pub fn fold<T: Default>(&self, mut step: impl FnMut(&mut T, InboxEntry)) -> Result<T, Error> {
        for _ in 0..OPTIMISTIC {
            let (mut all, mut mark) = (T::default(), None);
            loop {
                let (new, next) = self.part_since(mark.as_ref())?;
                // Others have taken out what was looked at.
                if next.began_again() {
                    break;
                }
                new.into_iter().for_each(|entry| step(&mut all, entry));
                if !next.is_behind() {
                    return Ok(all);
                }
                mark = Some(next);
            }
        }
        let mut all = T::default();
        self.read()?.into_iter().for_each(|entry| step(&mut all, entry));
        Ok(all)
    }

    fn look(&self, mark: Option<&Mark>, most: usize) -> Result<Looked, Error> {
        let mark = mark.filter(|mark| mark.entries > 0);
        let nothing = || Ok((Vec::new(), Mark::empty(mark.is_some())));
        let Some(dir) = self.team.inboxes()? else { return nothing() };
        let (mut pause, mut changes, mut last) = (None, 0, None);
        while changes < CHANGES {
            if let Some(mark) = mark
                && let Some(followed) = mark.follow(dir, &self.file, most)?
            {
                return Ok(followed);
            }
            let Some(mut walk) = walked(dir, &self.file)? else { break };
            if let Ok(looked) = anew(mark, &mut walk, most) {
                return Ok(looked);
            }
            let now = Identity::at(dir, &self.file)?;
            changes += u32::from(std::mem::replace(&mut last, now) != now);
            // Half written: to read all of it would show no more.
            let pause = match &mut pause {
                Some(pause) => pause,
                none => none.insert(half_written(dir, &self.file, PATIENCE)?),
            };
            if !pause.wait() {
                break;
            }
        }
        // Where it never stands still as long as a walk takes, or is for others to tell.
        let read = read_as(self.team.way(), dir, &self.file, INBOX_LIMIT, PATIENCE, |text| {
            Shape::Array.check(text)
        })?;
        let Some((snapshot, ())) = read else { return nothing() };
        anew(mark, &mut Walk::of(snapshot, WINDOW), most).map_err(|Odd| Error::Contended(self.path()))
    }
}

/// What is new in a look at all of it: behind the last entry that `mark` has seen, or all, where that is not at its place.
fn anew(mark: Option<&Mark>, walk: &mut Walk, most: usize) -> Result<Looked, Odd> {
    let Some(mark) = mark else { return Mark::empty(false).go_on(walk, most) };
    let (mut at, mut last) = (Mark::empty(mark.began_again && mark.behind), None);
    while at.entries < mark.entries
        && let Some(raw) = walk.next()?
    {
        let entry = InboxEntry::parse(at.entries, raw);
        at.count(&entry);
        last = Some(entry);
    }
    if at.entries == mark.entries && last.as_ref().map(said) == Some(mark.last) {
        at.last = mark.last;
        return at.go_on(walk, most);
    }
    walk.rewind()?;
    Mark::empty(true).go_on(walk, most)
}

/// At the start of the file; none where it is missing or too large, which is for others to tell.
fn walked(dir: &Directory, name: &str) -> Result<Option<Walk>, Error> {
    Ok(Walk::start(dir, name, WINDOW)?.filter(|walk| walk.size() <= INBOX_LIMIT))
}
