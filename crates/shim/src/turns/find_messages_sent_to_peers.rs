//! Finds the messages that an agent sent to other members during a turn. When the turn has ended,
//! the shim sends a summary of these messages to the lead, in an `idle_notification`.
//!
//! The shim does not see when an agent sends a message, because the agent runs `teamctl send` or
//! another program to do so. Instead, the shim searches the inboxes that have changed since the
//! start of the turn.

use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, UNIX_EPOCH};
use store::now;
use store::{InboxCursor, Team};

/// The search includes inboxes whose modification time is up to this much before the start of the
/// turn. The kernel's clock for files advances in ticks, so a modification time may be slightly
/// earlier than the write. The value is two ticks of 10 ms.
const MTIME_SLACK: Duration = Duration::from_millis(20);
/// The most messages in a summary.
const MAX_MESSAGES: usize = 20;
/// The most characters of a message that has no summary of its own.
const SUMMARY_CHARS: usize = 80;

/// The messages that an agent sent to other members during a turn.
#[derive(Debug, Default)]
pub(super) struct SentMessages {
    /// Each message as `[to NAME] SUMMARY`; at most [`MAX_MESSAGES`].
    summaries: Vec<String>,
    /// The members that got a message.
    recipients: BTreeSet<MemberName>,
}

impl SentMessages {
    /// All summaries in one line. `None` if the agent sent no message.
    pub(super) fn summary(&self) -> Option<String> {
        (!self.summaries.is_empty()).then(|| self.summaries.join("; "))
    }

    /// Whether the agent sent a message to `member`.
    pub(super) fn has_recipient(&self, member: &MemberName) -> bool {
        self.recipients.contains(member)
    }
}

/// How far the shim has read the inbox of each other member. The next search begins after the last
/// entry that was read.
#[derive(Debug, Default)]
pub(super) struct PeerInboxCursors(BTreeMap<String, InboxCursor>);

impl PeerInboxCursors {
    /// Finds the messages that `member` has sent since `since`, in milliseconds since the epoch.
    /// An inbox that cannot be read is skipped.
    pub(super) fn find_sent(&mut self, team: &Team, member: &MemberName, since: u64) -> SentMessages {
        let now = now();
        let mut sent_messages = SentMessages::default();
        for name in changed_inboxes(team, member, since) {
            let peer = MemberName::new_unchecked(&name);
            if peer == *member || peer.is_lead() {
                continue;
            }
            let Ok((entries, cursor)) = team.inbox(&peer).read_since(self.0.get(&name)) else { continue };
            let messages = entries.iter().filter_map(|entry| entry.message.as_ref().ok());
            let mut messages =
                messages.filter(|message| is_sent_message(message, member, since, now)).peekable();
            if messages.peek().is_some() {
                sent_messages.recipients.insert(peer);
            }
            sent_messages
                .summaries
                .extend(messages.map(|message| format!("[to {name}] {}", summary(message))));
            self.0.insert(name, cursor);
        }
        sent_messages.summaries.truncate(MAX_MESSAGES);
        sent_messages
    }
}

/// The names of the members whose inboxes were written at or after `since`, in milliseconds since
/// the epoch. Includes the lead and `member` itself. The names are sorted. Files that cannot be
/// read are skipped.
fn changed_inboxes(team: &Team, member: &MemberName, since: u64) -> Vec<String> {
    let own_inbox = team.inbox(member);
    let since = (UNIX_EPOCH + Duration::from_millis(since)).checked_sub(MTIME_SLACK).unwrap_or(UNIX_EPOCH);
    let directory = own_inbox.path().parent().map(std::fs::read_dir);
    let files = directory.into_iter().flatten().flatten().flatten();
    let names = files.filter_map(|file| {
        let name = file.file_name().into_string().ok()?.strip_suffix(".json")?.to_owned();
        (!name.starts_with('.') && file.metadata().ok()?.modified().ok()? >= since).then_some(name)
    });
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

fn is_sent_message(message: &Message, member: &MemberName, since: u64, until: u64) -> bool {
    let sent_at = parse_iso8601(&message.timestamp).unwrap_or(0);
    MemberName::new_unchecked(&message.from) == *member
        && (since..=until).contains(&sent_at)
        && Payload::parse(&message.text).is_none()
}

fn summary(message: &Message) -> String {
    let first = || message.text.lines().next().unwrap_or_default().chars().take(SUMMARY_CHARS).collect();
    message.summary.clone().unwrap_or_else(first).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_messages_that_the_agent_sent_during_the_turn_count() {
        let member = MemberName::parse("ann").unwrap();
        let is_sent = |from: &str, at: u64, text: &str| {
            is_sent_message(
                &Message::new(&MemberName::new_unchecked(from), text.to_owned(), at),
                &member,
                1000,
                2000,
            )
        };
        assert!(is_sent("ann", 1000, "x") && is_sent("Ann", 2000, "x"));
        assert!(!is_sent("bob", 1500, "x") && !is_sent("ann", 999, "x") && !is_sent("ann", 2001, "x"));
        assert!(!is_sent("ann", 1500, r#"{"type":"task_assignment","taskId":"3","subject":"s"}"#));
    }

    #[test]
    fn first_line_is_the_summary_of_a_message_without_one() {
        let message = Message::new(&MemberName::lead(), format!("{}\nmore", "ü".repeat(200)), 0);
        assert_eq!(summary(&message), "ü".repeat(80));
        assert_eq!(summary(&Message { summary: Some("a\nb".into()), ..message }), "a b");
    }
}
