//! What is new in an inbox since the last look, for the event log.

use super::job::{Letter, Mail};
use protocol::message::Entry;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use std::collections::BTreeMap;
use store::{Error, Mark, Team};

/// How far each inbox has been looked at.
#[derive(Debug)]
pub(super) struct Inboxes {
    /// How many entries an earlier daemon told of each.
    told: BTreeMap<(TeamName, AgentName), usize>,
    marks: BTreeMap<(TeamName, AgentName), Mark>,
}

impl Inboxes {
    pub(super) fn new(told: BTreeMap<(TeamName, AgentName), usize>) -> Inboxes {
        Inboxes { told, marks: BTreeMap::new() }
    }

    /// A later team of that name begins with empty inboxes.
    pub(super) fn forget(&mut self, team: &TeamName) {
        self.told.retain(|(of, _), _| of != team);
        self.marks.retain(|(of, _), _| of != team);
    }

    pub(super) fn look(&mut self, team: &Team, inbox: &str) -> Result<Mail, Error> {
        let name = AgentName::foreign(inbox);
        let key = (team.name().clone(), name.clone());
        let before = self.marks.get(&key);
        let (entries, mark) = team.inbox(&name).since(before)?;
        let mail = match before {
            None => first(&entries, self.told.get(&key).copied().unwrap_or(0)),
            // Its owner has taken out what it consumed, or somebody has rewritten it: nobody knows what is new.
            Some(_) if mark.began_again() => {
                Mail { unread: Some(mark.unread()), earlier: letters(&entries), ..Mail::default() }
            }
            Some(before) => {
                let new_unread = entries.iter().filter(|entry| entry.unread().is_some()).count();
                let read = mark.unread() < before.unread() + new_unread;
                Mail { new: letters(&entries), unread: read.then_some(mark.unread()), ..Mail::default() }
            }
        };
        self.marks.insert(key, mark);
        Ok(mail)
    }
}

/// Of an inbox that this daemon sees for the first time.
fn first(entries: &[Entry], told: usize) -> Mail {
    let (earlier, new) = entries.split_at(told.min(entries.len()));
    Mail { new: letters(new), earlier: letters(earlier), unread: None }
}

/// Without those that are no messages: they have no sender.
fn letters(entries: &[Entry]) -> Vec<Letter> {
    entries.iter().filter_map(letter).collect()
}

fn letter(entry: &Entry) -> Option<Letter> {
    let message = entry.message.as_ref().ok()?;
    Some(Letter {
        index: entry.index,
        from: AgentName::foreign(&message.from),
        summary: message.summary.clone(),
        payload: Payload::parse(&message.text),
    })
}
