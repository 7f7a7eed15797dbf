//! What is new in an inbox since the last look, for the event log.

use super::job::{Letter, Mail};
use protocol::message::Entry;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use std::collections::BTreeMap;
use store::{Error, Team};

/// How far each inbox has been looked at.
#[derive(Debug)]
pub(super) struct Inboxes {
    /// What an earlier daemon told of them.
    told: BTreeMap<(TeamName, AgentName), usize>,
    seen: BTreeMap<(TeamName, AgentName), Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    entries: usize,
    unread: usize,
}

impl Inboxes {
    pub(super) fn new(told: BTreeMap<(TeamName, AgentName), usize>) -> Inboxes {
        Inboxes { told, seen: BTreeMap::new() }
    }

    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget(&mut self, team: &TeamName) {
        self.told.retain(|(of, _), _| of != team);
        self.seen.retain(|(of, _), _| of != team);
    }

    pub(super) fn look(&mut self, team: &Team, inbox: &str) -> Result<Mail, Error> {
        let name = AgentName::foreign(inbox);
        let key = (team.name().clone(), name.clone());
        let entries = team.inbox(&name).read()?;
        let unread = entries.iter().filter(|entry| entry.unread().is_some()).count();
        let before = self.seen.insert(key.clone(), Seen { entries: entries.len(), unread });
        let told = before.map(|seen| seen.entries).or_else(|| self.told.get(&key).copied()).unwrap_or(0);
        // Fewer than before: its owner has taken out what it consumed, and nobody knows what is new.
        let told = if told > entries.len() { entries.len() } else { told };
        let (old, new) = entries.split_at(told);
        let new_unread = new.iter().filter(|entry| entry.unread().is_some()).count();
        let read = before.is_some_and(|seen| unread < seen.unread + new_unread);
        Ok(Mail {
            new: new.iter().filter_map(letter).collect(),
            earlier: if before.is_none() { old.iter().filter_map(letter).collect() } else { Vec::new() },
            unread: read.then_some(unread),
        })
    }
}

/// None of one that is no message: it has no sender.
fn letter(entry: &Entry) -> Option<Letter> {
    let message = entry.message.as_ref().ok()?;
    Some(Letter {
        index: entry.index,
        from: AgentName::foreign(&message.from),
        summary: message.summary.clone(),
        payload: Payload::parse(&message.text),
    })
}
