//! The journal, held against the inboxes: which acknowledged messages nobody has had yet, and which of them are gone.
//!
//! For the one who puts back, the daemon. What it remembers is small: the messages stay in the files. It alone begins
//! the file anew, carrying over what is still open.

use super::line::{Line, Note, all, bytes, id, id_of, parse};
use super::{LIMIT, earlier, name, place};
use crate::error::Error;
use crate::inbox::Inbox;
use crate::team::Team;
use protocol::message::{InboxEntry, Message};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// A file is begun anew beyond this many bytes, or beyond what the one before it had, and long before it is full.
const ROUND: u64 = 256 << 10;
/// So many are remembered that were read before their sender had noted them.
const EARLY: usize = 1_024;
/// As often as that something that was put back may go again before it is its reader who takes it.
const DOUBTS: u32 = 3;

/// Who reads an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// Our own feed alone, which notes what it has handed over.
    Ours,
    /// Maybe a program of its own, which may take out what it has had.
    Maybe,
}

/// What a look found, since the look before.
#[derive(Debug, Clone, Copy)]
pub enum Looked<'e> {
    /// These more, and all that was there before as it was.
    Grown(&'e [InboxEntry]),
    /// Something else changed, too, or it was the first.
    Changed,
}

/// How a message that nobody has had yet was seen last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// Noted, and not found yet.
    Noted,
    /// In its inbox, unread.
    There,
    /// Missing, and put back.
    Back,
}

/// What is open of one team's acknowledged messages, by the inbox's file and the message's id; held by the one process
/// that puts back. [`Ledger::follow`] takes in what was noted, [`Ledger::settle`] compares it with an inbox.
#[derive(Debug, Default)]
pub struct Ledger {
    parts: [Option<Part>; 2],
    open: BTreeMap<String, BTreeMap<String, Open>>,
    /// Inboxes whose reader takes out what it has had.
    taken: BTreeSet<String>,
    /// How often something had gone again from inboxes whose reader has never noted what it had.
    doubts: BTreeMap<String, u32>,
    /// Inboxes whose reader has.
    notes: BTreeSet<String>,
    early: VecDeque<String>,
}

/// A file of notes, as far as it was read.
#[derive(Debug)]
struct Part {
    file: File,
    read: u64,
}

impl Part {
    /// What has come since, whole lines alone; none if the file is gone.
    fn more(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        let meta = self.file.metadata()?;
        let mut bytes = vec![0; meta.len().saturating_sub(self.read) as usize];
        self.file.read_exact_at(&mut bytes, self.read)?;
        bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1));
        self.read += bytes.len() as u64;
        Ok((meta.nlink() > 0).then_some(bytes))
    }
}

impl Ledger {
    /// Takes in what was noted since the last call. Before an inbox is read: then what was noted is in there, or lost.
    ///
    /// # Errors
    /// `Io`, `Untrusted`.
    pub fn follow(&mut self, team: &Team) -> Result<(), Error> {
        let (Some(dir), Some(of)) = (team.journal().there()?, place(team)?) else { return Ok(()) };
        for (at, name) in [earlier(team.name()), name(team.name())].into_iter().enumerate() {
            if self.parts[at].is_none() {
                self.parts[at] = dir.file(&name)?.map(|file| Part { file, read: 0 });
            }
            let Some(part) = &mut self.parts[at] else { continue };
            let more = part.more().map_err(|cause| Error::io("read", &dir.path().join(&name), cause))?;
            let gone = more.is_none();
            let mut lines: Vec<Line> =
                parse(&more.unwrap_or_default()).filter(|line| line.of == of).collect();
            lines.sort_by_key(|line| !line.old);
            lines.into_iter().for_each(|line| self.take(line));
            if gone {
                self.parts[at] = None;
            }
        }
        self.begin_anew(team)
    }

    fn take(&mut self, Line { to, note, .. }: Line) {
        let open = self.open.entry(to.clone()).or_default();
        match note {
            Note::Sent(message) => {
                let id = id_of(&message);
                if let Some(at) = self.early.iter().position(|early| *early == id) {
                    self.early.remove(at);
                } else {
                    open.entry(id).or_insert(Open::Noted);
                }
            }
            Note::Read(ids) => {
                self.notes.insert(to);
                self.early.extend(ids.into_iter().filter(|id| open.remove(id).is_none()));
                let surplus = self.early.len().saturating_sub(EARLY);
                self.early.drain(..surplus);
            }
            Note::Back(ids) => ids.into_iter().for_each(|id| {
                open.entry(id).and_modify(|open| *open = Open::Back);
            }),
            Note::Taken {} => drop(self.taken.insert(to)),
            Note::Retired {} => {
                open.clear();
                self.taken.remove(&to);
                self.doubts.remove(&to);
                self.notes.remove(&to);
            }
        }
    }

    /// The inboxes, by the names of their files, in which something was not found yet that was noted.
    pub fn unseen(&self) -> Vec<String> {
        let unseen = self.open.iter().filter(|(_, open)| open.values().any(|open| *open == Open::Noted));
        unseen.map(|(to, _)| to.clone()).collect()
    }

    /// Nothing is ever put back into this inbox.
    pub fn leave(&mut self, inbox: &Inbox) {
        self.open.remove(inbox.file());
    }

    /// Holds what was noted against what a look found, and puts back what is gone that its owner has not had; what that
    /// was. Each is put back once.
    ///
    /// # Errors
    /// Those of a change: it is tried again then at the next call.
    pub fn settle(
        &mut self,
        inbox: &Inbox,
        looked: Looked<'_>,
        reader: Reader,
    ) -> Result<Vec<Message>, Error> {
        let Some(open) = self.open.get_mut(inbox.file()).filter(|open| !open.is_empty()) else {
            return Ok(Vec::new());
        };
        if let Looked::Grown(new) = looked {
            new.iter().for_each(|entry| drop(see(open, entry)));
            if open.values().all(|open| *open != Open::Noted) {
                return Ok(Vec::new());
            }
        }
        let there = inbox.fold(|there: &mut BTreeSet<String>, entry| there.extend(see(open, &entry)))?;
        let gone: BTreeSet<String> = open.keys().filter(|id| !there.contains(*id)).cloned().collect();
        if gone.is_empty() {
            return Ok(Vec::new());
        }
        // So that it is looked for again if that fails.
        open.iter_mut()
            .filter(|(id, open)| **open == Open::There && gone.contains(*id))
            .for_each(|(_, open)| *open = Open::Noted);
        // Its owner may have had it since the journal was read, and somebody taken it out.
        self.follow(inbox.team())?;
        let lost = self.lost(inbox, &gone, reader)?;
        if lost.is_empty() { Ok(Vec::new()) } else { self.put_back(inbox, &lost) }
    }

    /// Which of those that are `gone` are to come back; the others are nobody's concern from now on.
    fn lost(
        &mut self,
        inbox: &Inbox,
        gone: &BTreeSet<String>,
        reader: Reader,
    ) -> Result<BTreeSet<String>, Error> {
        let (to, team) = (inbox.file(), inbox.team());
        let is_again =
            |open: &BTreeMap<String, Open>| gone.iter().any(|id| open.get(id) == Some(&Open::Back));
        let again = self.open.get(to).is_some_and(is_again);
        if again && reader == Reader::Maybe && self.doubted(to) {
            team.journal().add(team, [(to.to_owned(), Note::Taken {})].into_iter(), false)?;
        }
        let Some(open) = self.open.get_mut(to) else { return Ok(BTreeSet::new()) };
        let taken = self.taken.contains(to);
        open.retain(|id, open| !gone.contains(id) || (*open != Open::Back && !taken));
        Ok(gone.iter().filter(|id| open.contains_key(*id)).cloned().collect())
    }

    fn put_back(&mut self, inbox: &Inbox, lost: &BTreeSet<String>) -> Result<Vec<Message>, Error> {
        let (to, team) = (inbox.file().to_owned(), inbox.team());
        // Until it is done, so that it is not forgotten if it can't be.
        let again = lost.iter().map(|id| (id.clone(), Open::Noted));
        self.open.entry(to.clone()).or_default().extend(again);
        let noted = noted(team, &to)?;
        let put = inbox.put_back(&noted, lost)?;
        let back: Vec<String> = put.iter().map(id_of).collect();
        let open = self.open.entry(to.clone()).or_default();
        // What there was no room to carry over is known to nobody any more.
        open.retain(|id, _| !lost.contains(id));
        let held = noted.into_iter().map(|(id, _)| id).filter(|id| lost.contains(id));
        open.extend(held.map(|id| (id, Open::There)));
        open.extend(back.iter().map(|id| (id.clone(), Open::Back)));
        let note = (!back.is_empty()).then_some((to, Note::Back(back)));
        team.journal().add(team, note.into_iter(), false)?;
        Ok(put)
    }

    /// Counts that something had gone again; whether that makes it known that the inbox's reader takes out what it has had.
    fn doubted(&mut self, to: &str) -> bool {
        if self.notes.contains(to) {
            return false;
        }
        let doubts = self.doubts.entry(to.to_owned()).or_default();
        *doubts += 1;
        *doubts >= DOUBTS && self.taken.insert(to.to_owned())
    }

    /// Puts a file aside that has grown, and with it the one before; what of that is open is written anew, as far as
    /// there is room.
    fn begin_anew(&mut self, team: &Team) -> Result<(), Error> {
        let [before, Some(part)] = &self.parts else { return Ok(()) };
        let grown = before.as_ref().map_or(0, |before| before.read).clamp(ROUND, LIMIT / 2);
        if part.read <= grown {
            return Ok(());
        }
        let Some(dir) = team.journal().there()? else { return Ok(()) };
        let taken = self.taken.iter().map(|to| (to.clone(), Note::Taken {}));
        team.journal().add(team, taken, true)?;
        let bytes = bytes(dir, &earlier(team.name()))?;
        let mut kept: Vec<Line> = parse(&bytes).filter(|line| self.is_open(line)).collect();
        // What that one had got from the one before it stands behind what was noted in it.
        kept.sort_by_key(|line| !line.old);
        team.journal().add(team, kept.into_iter().map(|line| (line.to, line.note)), true)?;
        dir.rename(&name(team.name()), &earlier(team.name()))?;
        let [_, part] = std::mem::take(&mut self.parts);
        self.parts = [part, None];
        Ok(())
    }

    fn is_open(&self, line: &Line) -> bool {
        let open = |id: &String| self.open.get(&line.to).is_some_and(|open| open.contains_key(id));
        match &line.note {
            Note::Sent(message) => open(&id_of(message)),
            Note::Back(ids) => ids.iter().any(open),
            Note::Read(_) | Note::Taken {} | Note::Retired {} => false,
        }
    }
}

/// What is there is there, and what is read there is nobody's to put back. Its id, if it is open.
fn see(open: &mut BTreeMap<String, Open>, entry: &InboxEntry) -> Option<String> {
    let id = id(entry);
    let seen = open.get_mut(&id)?;
    if entry.unread().is_none() {
        open.remove(&id);
        return None;
    }
    if *seen == Open::Noted {
        *seen = Open::There;
    }
    Some(id)
}

/// What was sent to an inbox, in the order in which it was noted.
fn noted(team: &Team, to: &str) -> Result<Vec<(String, Message)>, Error> {
    let sent = all(team)?.into_iter().filter(|line| line.to == to).filter_map(|line| match line.note {
        Note::Sent(message) => Some((id_of(&message), message)),
        _ => None,
    });
    Ok(sent.collect())
}
