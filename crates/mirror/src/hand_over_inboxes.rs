//! Before the home moves to the annex: sends the annex all messages to the lead and to the members
//! that do not run at the annex. Until then, the annex has only some of these messages.

use crate::items_awaiting_acceptance::OnAcceptance;
use crate::known_messages::message_key;
use crate::messages::MessageToSend;
use crate::mirror::Mirror;
use crate::team_mirror::TeamMirror;
use protocol::annex_link::ItemPayload;
use protocol::team_and_member_names::{MemberName, TeamName};
use store::{Error, message_id};

/// Maximum number of message ids in one item.
const IDS_OF_ITEM: usize = 1_000;

impl Mirror {
    /// Sends the messages that the annex lacks, and then which of all messages were read.
    pub(crate) fn hand_over_inboxes(&mut self, team: &TeamName) -> Result<(), Error> {
        for owner in self.mirror(team)?.team.inbox_owners()? {
            let mirror = self.mirror(team)?;
            if mirror.members.contains_key(&owner) {
                continue;
            }
            let created_at = mirror.created_at;
            let (messages, read) = mirror.messages_to_hand_over(&owner)?;
            for MessageToSend { key, item } in messages {
                self.send_and_record(item, OnAcceptance::RecordMessage { team: team.clone(), key });
            }
            for messages in read.chunks(IDS_OF_ITEM) {
                let (team, owner, messages) = (team.clone(), owner.clone(), messages.to_vec());
                self.send(ItemPayload::Read { team, created_at, owner, messages });
            }
        }
        Ok(())
    }
}

impl TeamMirror {
    /// The messages of an inbox that the annex lacks, and the ids of all that were read.
    fn messages_to_hand_over(
        &mut self,
        owner: &MemberName,
    ) -> Result<(Vec<MessageToSend>, Vec<String>), Error> {
        let (mut sent, mut read) = (Vec::new(), Vec::new());
        for message in self.team.inbox(owner).read()?.into_iter().filter_map(|entry| entry.message.ok()) {
            let id = message_id(&message);
            let key = message_key(owner, &id);
            if message.read {
                read.push(id);
            }
            if !self.known_messages.contains(&key) {
                self.known_messages.note(&key);
                let (team, created_at) = (self.name(), self.created_at);
                let item = ItemPayload::Message { team, created_at, to: owner.clone(), message };
                sent.push(MessageToSend { key, item });
            }
        }
        Ok((sent, read))
    }
}
