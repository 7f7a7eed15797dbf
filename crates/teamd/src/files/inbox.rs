//! What is new in an inbox since the last look, for the event log; and what is gone of it that was acknowledged.

use super::job::{Guard, Letter, Mail};
use protocol::message::{InboxEntry, Message};
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use std::collections::BTreeMap;
use store::{Error, InboxChange, InboxCursor, InboxReconciler, ReaderKind, Team};

/// How far each inbox has been looked at.
#[derive(Debug)]
pub(super) struct Inboxes {
    /// How many entries an earlier daemon told of each, until this one has looked through it.
    told: BTreeMap<(TeamName, AgentName), usize>,
    marks: BTreeMap<(TeamName, AgentName), InboxCursor>,
    /// Those that have more than grown, since they were held against what was acknowledged; and whether of them some were
    /// read, which nobody was told yet.
    changed: BTreeMap<(TeamName, AgentName), bool>,
    /// What was acknowledged.
    ledgers: BTreeMap<TeamName, InboxReconciler>,
}

impl Inboxes {
    pub(super) fn new(told: BTreeMap<(TeamName, AgentName), usize>) -> Inboxes {
        Inboxes { told, marks: BTreeMap::new(), changed: BTreeMap::new(), ledgers: BTreeMap::new() }
    }

    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget(&mut self, team: &TeamName) {
        self.told.retain(|(of, _), _| of != team);
        self.marks.retain(|(of, _), _| of != team);
        self.changed.retain(|(of, _), _| of != team);
        self.ledgers.remove(team);
    }

    /// The inboxes in which something was not found yet that was acknowledged: nobody is told when they are to be
    /// looked at.
    pub(super) fn unseen(&mut self, team: &Team) -> Result<Vec<String>, Error> {
        let ledger = self.ledgers.entry(team.name().clone()).or_default();
        ledger.read_journal(team)?;
        Ok(ledger.inboxes_with_unseen())
    }

    /// A part of what is new, so that memory does not grow with an inbox; where there is more, it is to be looked at again.
    pub(super) fn look(&mut self, team: &Team, inbox: &str, guard: Guard) -> Result<Mail, Error> {
        let name = AgentName::new_unchecked(inbox);
        let key = (team.name().clone(), name.clone());
        let before = self.marks.get(&key);
        if matches!(guard, Guard::Fed | Guard::Looks) {
            let followed = self.ledgers.entry(team.name().clone()).or_default().read_journal(team);
            followed.unwrap_or_else(|error| untold(&error));
        }
        let (entries, mark) = team.inbox(&name).read_chunk_since(before)?;
        let mut mail = self.mail(&key, &entries, &mark);
        if before.is_none() || mark.is_reset() || mail.unread.is_some() {
            *self.changed.entry(key.clone()).or_default() |= mail.unread.is_some();
        }
        let unread = mark.unread_count();
        self.marks.insert(key.clone(), mark);
        if mail.more {
            return Ok(Mail { unread: None, ..mail });
        }
        self.told.remove(&key);
        let changed = self.changed.get_mut(&key);
        let looked = if changed.is_some() { InboxChange::Rewritten } else { InboxChange::Appended(&entries) };
        mail.unread = changed.is_some_and(std::mem::take).then_some(unread);
        match self.settle(team, &name, looked, guard) {
            Ok(put_back) => {
                self.changed.remove(&key);
                mail.put_back = put_back;
            }
            // What has changed is held against it at the next look.
            Err(error) => untold(&error),
        }
        Ok(mail)
    }

    fn mail(&self, key: &(TeamName, AgentName), entries: &[InboxEntry], mark: &InboxCursor) -> Mail {
        let more = mark.has_more();
        // Its owner has taken out what it consumed, or somebody has rewritten it: nobody knows what is new.
        if mark.is_reset() {
            return Mail {
                earlier: letters(entries),
                unread: Some(mark.unread_count()),
                more,
                ..Mail::default()
            };
        }
        let told = self.told.get(key).copied().unwrap_or(0);
        let (earlier, new) = entries.split_at(entries.partition_point(|entry| entry.index < told));
        // What is new was unread once, even if its owner was faster than this look.
        let was_unread = self.marks.get(key).map_or(0, InboxCursor::unread_count)
            + earlier.iter().filter(|entry| entry.unread().is_some()).count()
            + new.iter().filter(|entry| entry.message.is_ok()).count();
        let unread = (mark.unread_count() < was_unread).then_some(mark.unread_count());
        Mail { new: letters(new), earlier: letters(earlier), unread, more, ..Mail::default() }
    }

    fn settle(
        &mut self,
        team: &Team,
        name: &AgentName,
        looked: InboxChange<'_>,
        guard: Guard,
    ) -> Result<Vec<Letter>, Error> {
        let Some(ledger) = self.ledgers.get_mut(team.name()) else { return Ok(Vec::new()) };
        let inbox = team.inbox(name);
        let reader = match guard {
            Guard::Later => return Ok(Vec::new()),
            Guard::Never => {
                ledger.stop_restoring(&inbox);
                return Ok(Vec::new());
            }
            Guard::Fed => ReaderKind::OwnDelivery,
            Guard::Looks => ReaderKind::ForeignProgram,
        };
        Ok(ledger.reconcile(&inbox, looked, reader)?.iter().map(|message| of_message(0, message)).collect())
    }
}

/// What was acknowledged is looked at beside what is new, which is told whatever came of that: it stays noted.
fn untold(error: &Error) {
    tracing::warn!("cannot compare an inbox with what was sent to it: {error}");
}

/// Without those that are no messages: they have no sender.
fn letters(entries: &[InboxEntry]) -> Vec<Letter> {
    entries.iter().filter_map(letter).collect()
}

fn letter(entry: &InboxEntry) -> Option<Letter> {
    Some(of_message(entry.index, entry.message.as_ref().ok()?))
}

fn of_message(index: usize, message: &Message) -> Letter {
    Letter {
        index,
        from: AgentName::new_unchecked(&message.from),
        summary: message.summary.clone(),
        payload: Payload::parse(&message.text),
    }
}
