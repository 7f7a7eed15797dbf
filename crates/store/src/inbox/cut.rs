//! Where a long inbox may be taken up: what a change of its end, and a look at what is unread, need not read again. Noted
//! outside the root by whoever changes the inbox; whoever finds the file to be another one than it was
//! left reads it whole.

use super::Inbox;
use crate::error::Error;
use crate::file::{Known, Long, Replaced};
use crate::lock::Lock;
use protocol::json::{Array, Object};
use protocol::message::InboxEntry;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use uuid::Uuid;

/// Shorter inboxes are quicker to read than to take up, in bytes.
pub(super) const LONG: u64 = 16 << 10;
/// A longer end is prepared without the lock, as a short inbox is, in bytes.
const LITTLE: u64 = 64 << 10;
/// The bytes of a note, more than it can need: one that is written while another reads it never has the rest of a longer
/// one behind it.
const NOTE: usize = 1024;

/// The end of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cut {
    known: Known,
    /// The last entry.
    pub(super) last: Place,
    /// All entries before it are read.
    pub(super) unread: Place,
}

/// Where an entry begins, with the comma before it behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// In bytes.
    offset: u64,
    /// So many entries stand before it.
    entries: usize,
}

impl Place {
    const START: Place = Place { offset: 0, entries: 0 };
}

/// An inbox without its first entries, as a text of its own.
pub(super) struct End<'d> {
    long: Long<'d>,
    cut: Cut,
    place: Place,
    /// A bracket in place of all before.
    pub(super) text: String,
}

/// What of a cut stands in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    last: Place,
    unread: Place,
}

impl Ends {
    /// None of a short text.
    pub(super) fn of(text: &str) -> Option<Ends> {
        if (text.len() as u64) < LONG {
            return None;
        }
        let (last, unread) = places_in(text, Place::START, None)?;
        Some(Ends { last, unread })
    }

    /// In the file that was put in place.
    pub(super) fn cut(self, known: Known) -> Cut {
        Cut { known, last: self.last, unread: self.unread }
    }
}

impl Cut {
    /// What `inbox` is known to be since the last change; none if that is nothing, or can't be trusted.
    pub(super) fn noted(inbox: &Inbox) -> Option<Cut> {
        let bytes = inbox.team.journal().cut(inbox.team.name(), &inbox.file)?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let (sum, note) = text.trim_end().split_once(' ')?;
        (sum == summed(note)?).then(|| serde_json::from_str(note).ok())?
    }

    /// Whether from one of its places on it is little: what is done to an end is done under the lock, which others may not
    /// wait for.
    pub(super) fn is_little(&self, from: fn(&Cut) -> Place) -> bool {
        self.known.size().saturating_sub(from(self).offset) <= LITTLE
    }

    /// Whether a change from one of its places on costs next to nothing, so that it is built under the lock at once, where
    /// all who send queue.
    pub(super) fn is_quick(&self, inbox: &Inbox) -> bool {
        self.known.is_quick(inbox.team.way().durability)
    }

    /// Notes it for the next. Without it the next one reads all, so it is left out where it can't be written.
    pub(super) fn note(&self, inbox: &Inbox) {
        let Ok(note) = serde_json::to_string(self) else { return };
        let Some(sum) = summed(&note) else { return };
        let line = format!("{:NOTE$}\n", format!("{sum} {note}"));
        inbox.team.journal().note_cut(inbox.team.name(), &inbox.file, line.as_bytes()).ok();
    }

    /// The end of `inbox` from one of its places on, if it is still what it was.
    pub(super) fn end<'i>(self, inbox: &'i Inbox, from: fn(&Cut) -> Place) -> Result<Option<End<'i>>, Error> {
        let Some(dir) = inbox.team.inboxes()? else { return Ok(None) };
        let Some(long) = Long::open(dir, &inbox.file, self.known)? else { return Ok(None) };
        let place = from(&self);
        let text = long.end(place.offset)?.map(|end| format!("[{end}"));
        Ok(text.map(|text| End { long, cut: self, place, text }))
    }
}

impl End<'_> {
    /// How many entries stand before it.
    pub(super) fn entries_before(&self) -> usize {
        self.place.entries
    }

    /// Its entries, numbered as in the whole; none if it is not what an end is.
    pub(super) fn entries(&self) -> Option<Vec<InboxEntry>> {
        let array = Array::parse(&self.text).ok()?;
        let entries = (self.place.entries..).zip(array.elements());
        Some(entries.map(|(at, element)| InboxEntry::parse(at, element.get())).collect())
    }

    /// Puts `after` in its place, under the inbox's lock, and notes what is known then; false where that can't be done.
    pub(super) fn replace(self, inbox: &Inbox, early: Option<Lock>, after: &str) -> Result<bool, Error> {
        let Some((last, unread)) = places_in(after, self.place, Some(self.cut.unread)) else {
            return Ok(false);
        };
        let texts = (&self.text[1..], &after[1..]);
        // Whoever has lost the lock meanwhile makes nothing more.
        if early.as_ref().is_some_and(|lock| !matches!(lock.is_ours(), Ok(true))) {
            return Ok(false);
        }
        let Some(own) = self.long.prepared(inbox.team.way(), self.place.offset, texts)? else {
            return Ok(false);
        };
        let lock = early.map_or_else(|| self.long.lock(), Ok)?;
        match self.long.put(&own, &lock)? {
            Replaced::Not => return Ok(false),
            Replaced::Done(Some(known)) => Cut { known, last, unread }.note(inbox),
            Replaced::Done(None) => {}
        }
        Ok(true)
    }
}

/// The last entry of a text that begins at `from`, and the first that may be unread: no earlier one than `unread` is.
fn places_in(text: &str, from: Place, unread: Option<Place>) -> Option<(Place, Place)> {
    let array = Array::parse(text).ok()?;
    let parts: Vec<usize> = array.element_starts().collect();
    // A bracket of ours stands before an end, and is no byte of the file.
    let shift = u64::from(from != Place::START);
    let place =
        |at: usize| Place { offset: from.offset + parts[at] as u64 - shift, entries: from.entries + at };
    let last = parts.len().checked_sub(1)?;
    let is_unread = |at: &usize| is_unread(array.elements()[*at].get());
    let first = match unread {
        Some(unread) if unread.entries < from.entries => unread,
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
fn summed(note: &str) -> Option<String> {
    static BOOT: OnceLock<Option<String>> = OnceLock::new();
    let boot = BOOT.get_or_init(|| std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok());
    let text = format!("{}{note}", boot.as_ref()?);
    Some(Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).simple().to_string())
}
