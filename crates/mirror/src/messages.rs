//! Finds the messages that the other end lacks, and stores the messages of the other end.

use crate::known_messages::message_key;
use crate::team_mirror::TeamMirror;
use crate::unread_messages::UnreadMessages;
use protocol::annex_link::ItemPayload;
use protocol::inbox_file::{InboxEntry, Message};
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeSet, HashSet};
use store::{Error, message_id};

/// A message to send to the other end. It is recorded as known once the link keeps it.
#[derive(Debug)]
pub(crate) struct MessageToSend {
    pub(crate) key: String,
    pub(crate) item: ItemPayload,
}

/// Which messages of an inbox the other end gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selection {
    /// At the annex: all.
    All,
    /// At the home: only the unread messages. A read message that was never sent was for an earlier
    /// member of the same name.
    Unread,
}

impl TeamMirror {
    /// The messages of an inbox that are new since its last comparison and that the other end
    /// lacks.
    pub(crate) fn new_messages(
        &mut self,
        owner: &MemberName,
        selection: Selection,
    ) -> Result<Vec<MessageToSend>, Error> {
        let inbox = self.team.inbox(owner);
        let (entries, cursor) = inbox.read_since(self.cursors.get(owner))?;
        self.cursors.insert(owner.clone(), cursor);
        let mut sent = Vec::new();
        for message in entries.into_iter().filter_map(|entry| entry.message.ok()) {
            let id = message_id(&message);
            let key = message_key(owner, &id);
            if selection == Selection::All && self.members.contains_key(owner) {
                let unread = self.unread.entry(owner.clone()).or_default();
                unread.ids.insert(id);
                unread.entries += 1;
            }
            if self.known_messages.contains(&key) || selection == Selection::Unread && message.read {
                continue;
            }
            self.known_messages.note(&key);
            let message = Message { read: false, ..message };
            let (team, created_at) = (self.name(), self.created_at);
            let item = ItemPayload::Message { team, created_at, to: owner.clone(), message };
            sent.push(MessageToSend { key, item });
        }
        Ok(sent)
    }

    /// Stores the messages of the other end that are not known, in one write.
    pub(crate) fn store_messages(&mut self, to: &MemberName, messages: &[&Message]) -> Result<(), Error> {
        let mut keys = Vec::new();
        let mut unknown = Vec::new();
        for message in messages {
            let id = message_id(message);
            let key = message_key(to, &id);
            if !self.known_messages.contains(&key) && !keys.contains(&key) {
                keys.push(key);
                unknown.push((id, *message));
            }
        }
        if unknown.is_empty() {
            return Ok(());
        }
        // An earlier process may have been killed after it stored a message and before it recorded
        // that. So until the first comparison of an inbox, the messages are also looked for in the
        // inbox itself.
        if !self.cursors.contains_key(to) {
            let stored = self.message_ids(to)?;
            unknown.retain(|(id, _)| !stored.contains(id));
        }
        let new: Vec<Message> = unknown.into_iter().map(|(_, message)| message.clone()).collect();
        if !new.is_empty() {
            self.team.inbox(to).append_received(&new)?;
        }
        let recorded = self.known_messages.record(&keys);
        if recorded.is_err() {
            // The messages come again, and the inbox must be searched for them.
            self.cursors.remove(to);
        }
        recorded
    }

    /// The ids of all messages in an inbox.
    pub(crate) fn message_ids(&self, owner: &MemberName) -> Result<HashSet<String>, Error> {
        let entries = self.team.inbox(owner).read()?;
        Ok(entries.iter().filter_map(|entry| entry.message.as_ref().ok()).map(message_id).collect())
    }

    /// At the annex: the ids of the messages that a member has read since the last comparison. At
    /// the first comparison, the ids of all read messages. Call [`TeamMirror::new_messages`] first.
    pub(crate) fn newly_read(&mut self, owner: &MemberName) -> Result<Vec<String>, Error> {
        let entries = self.team.inbox(owner).read_unread()?;
        // Computing the ids is slow. So they are computed only if the number of unread messages
        // differs from the number at the last comparison. If one message was read and another has
        // arrived since `new_messages`, the number is the same. Then the file event of the new
        // message starts another comparison.
        let before = self.unread.remove(owner).unwrap_or_default();
        if before.entries == entries.len() {
            self.unread.insert(owner.clone(), before);
            return Ok(Vec::new());
        }
        let messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
        let ids: BTreeSet<String> = messages.map(message_id).collect();
        let read = before.ids.difference(&ids).cloned().collect();
        self.unread.insert(owner.clone(), UnreadMessages { ids, entries: entries.len() });
        Ok(read)
    }

    /// Marks messages as read that were read at the other end. The home does this whenever a member
    /// has read messages at the annex. The annex does it only when the home moves there.
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
