//! A copy of a message in one inbox.

use protocol::inbox_file::Message;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;
use store::{Team, message_id};

/// A message in one inbox.
pub(super) struct MessageCopy {
    pub(super) team: Team,
    /// The owner of the inbox.
    pub(super) to: MemberName,
    pub(super) message: Message,
    /// All copies of a message have the same id.
    pub(super) id: String,
    pub(super) location: CopyLocation,
}

/// Where a copy of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyLocation {
    /// In the inbox at this index, counted from 0.
    InInbox { index: usize },
    /// In teamd's journal only: another program has taken the message out of the inbox.
    InJournalOnly,
}

impl MessageCopy {
    pub(super) fn new(team: &Team, to: MemberName, message: Message, location: CopyLocation) -> MessageCopy {
        MessageCopy { team: team.clone(), to, id: message_id(&message), message, location }
    }

    /// When the message was sent, in ms since the epoch. 0 if its timestamp is invalid.
    pub(super) fn sent_at(&self) -> u64 {
        parse_iso8601(&self.message.timestamp).unwrap_or(0)
    }
}
