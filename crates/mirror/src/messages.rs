//! Messages: finds those that the other end lacks, and stores those of the other end.

use crate::known_messages::message_key;
use crate::team_mirror::TeamMirror;
use protocol::annex_link::ItemPayload;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeSet, HashSet};
use store::{Error, message_id};

/// A message that was sent to the other end. It is recorded as known once the link has accepted it.
#[derive(Debug)]
pub(crate) struct SentMessage {
    pub(crate) key: String,
    pub(crate) item: ItemPayload,
}

/// Which messages of an inbox the other end gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// At the annex: all.
    All,
    /// At the home: those that the new member has not read. An earlier member of the same name had
    /// the others.
    Unread,
}

impl TeamMirror {
    /// The messages that were added to an inbox since it was compared last, and that the other end
    /// lacks.
    pub(crate) fn new_messages(
        &mut self,
        owner: &MemberName,
        selection: Selection,
    ) -> Result<Vec<SentMessage>, Error> {
        let inbox = self.team.inbox(owner);
        let (entries, cursor) = inbox.read_since(self.cursors.get(owner))?;
        self.cursors.insert(owner.clone(), cursor);
        let mut sent = Vec::new();
        for message in entries.into_iter().filter_map(|entry| entry.message.ok()) {
            let id = message_id(&message);
            let key = message_key(owner, &id);
            self.unread.entry(owner.clone()).or_default().insert(id);
            if self.known_messages.contains(&key) || selection == Selection::Unread && message.read {
                continue;
            }
            self.known_messages.note(&key);
            let message = Message { read: false, ..message };
            let item = ItemPayload::Message { team: self.name(), to: owner.clone(), message };
            sent.push(SentMessage { key, item });
        }
        Ok(sent)
    }

    /// Stores a message of the other end, unless it is known.
    pub(crate) fn store_message(&mut self, to: &MemberName, message: &Message) -> Result<(), Error> {
        let id = message_id(message);
        let key = message_key(to, &id);
        if self.known_messages.contains(&key) {
            return Ok(());
        }
        // The process may have been killed after it had stored the message, and before it recorded
        // that. The inbox shows it until it is compared for the first time.
        let may_be_stored = !self.cursors.contains_key(to);
        if !may_be_stored || !self.has_message(to, &id)? {
            self.team.inbox(to).append_received(message)?;
        }
        self.known_messages.record(&[key])
    }

    pub(crate) fn has_message(&self, owner: &MemberName, id: &str) -> Result<bool, Error> {
        let entries = self.team.inbox(owner).read()?;
        let mut messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
        Ok(messages.any(|message| message_id(message) == id))
    }

    /// At the annex: the ids of the messages that a member has read since the last comparison. After the
    /// start, those of all read messages. The inbox was compared just before.
    pub(crate) fn newly_read(&mut self, owner: &MemberName) -> Result<Vec<String>, Error> {
        let entries = self.team.inbox(owner).read_unread()?;
        let messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
        let unread: BTreeSet<String> = messages.map(message_id).collect();
        let before = self.unread.insert(owner.clone(), unread.clone()).unwrap_or_default();
        Ok(before.difference(&unread).cloned().collect())
    }

    /// At the home: marks messages read that their recipient has read at the annex.
    pub(crate) fn mark_read(&self, owner: &MemberName, ids: &[String]) -> Result<(), Error> {
        let inbox = self.team.inbox(owner);
        let ids: HashSet<&String> = ids.iter().collect();
        let is_read = |entry: &InboxEntry| {
            entry.message.as_ref().is_ok_and(|message| ids.contains(&message_id(message)))
        };
        let entries: Vec<InboxEntry> = inbox.read_unread()?.into_iter().filter(is_read).collect();
        if entries.is_empty() { Ok(()) } else { inbox.mark_read(&entries) }
    }
}
