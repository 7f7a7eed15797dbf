//! Shortens the messages that a lead session gets about its members. All members that ended a turn
//! without a message share one line. A message that was sent several times appears once. The inbox
//! itself is not changed.

use protocol::inbox_file::{InboxEntry, Message};
use protocol::inbox_message_payload::IdleNotification;

/// One update for the lead, with all inbox entries for which it stands.
#[derive(Debug, PartialEq)]
pub(super) enum LeadUpdate {
    Message {
        message: Box<Message>,
        times: usize,
        entries: Vec<InboxEntry>,
    },
    /// These members have ended turns.
    Idle {
        names: Vec<String>,
        entries: Vec<InboxEntry>,
    },
}

impl LeadUpdate {
    pub(super) fn entries(&self) -> &[InboxEntry] {
        match self {
            LeadUpdate::Message { entries, .. } | LeadUpdate::Idle { entries, .. } => entries,
        }
    }
}

/// Returns the updates that the lead gets in place of the unread entries of its inbox, oldest
/// first. The last update names all idle members, because the lead should read the members'
/// messages first.
pub(super) fn lead_updates(unread: &[InboxEntry]) -> Vec<LeadUpdate> {
    let mut updates: Vec<LeadUpdate> = Vec::new();
    let mut idle: Option<LeadUpdate> = None;
    for entry in unread {
        let Some(message) = entry.unread() else { continue };
        if IdleNotification::is_bare_in(&message.text) {
            let (mut names, mut entries) = match idle.take() {
                Some(LeadUpdate::Idle { names, entries }) => (names, entries),
                _ => (Vec::new(), Vec::new()),
            };
            names.retain(|name| *name != message.from);
            names.push(message.from.clone());
            entries.push(entry.clone());
            idle = Some(LeadUpdate::Idle { names, entries });
            continue;
        }
        // A message is compared only with the latest message of its sender. If the sender has sent
        // another message in between, the lead gets the repeated message again, because it may mean
        // something new.
        match updates
            .iter_mut()
            .rev()
            .find(|update| is_from_sender_of(update, message))
            .and_then(|update| repeated_message(update, message))
        {
            Some((times, entries)) => {
                *times += 1;
                entries.push(entry.clone());
            }
            None => updates.push(LeadUpdate::Message {
                message: Box::new(message.clone()),
                times: 1,
                entries: vec![entry.clone()],
            }),
        }
    }
    updates.extend(idle);
    updates
}

fn is_from_sender_of(update: &LeadUpdate, message: &Message) -> bool {
    matches!(update, LeadUpdate::Message { message: other, .. } if other.from == message.from)
}

/// If `message` repeats the message in `update`, returns the count and the entries of `update`, so
/// that the caller adds `message` to them. `None` if `message` is no repetition. A message whose
/// text is JSON never is one.
fn repeated_message<'r>(
    update: &'r mut LeadUpdate,
    message: &Message,
) -> Option<(&'r mut usize, &'r mut Vec<InboxEntry>)> {
    match update {
        LeadUpdate::Message { message: first, times, entries } if message.repeats(first) => {
            Some((times, entries))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: usize, from: &str, text: &str) -> InboxEntry {
        let raw = serde_json::json!({"from": from, "text": text, "timestamp": "", "read": false});
        InboxEntry::parse(index, &raw.to_string())
    }

    fn idle(more: &str) -> String {
        format!(r#"{{"type":"idle_notification","from":"x","timestamp":"","idleReason":"available"{more}}}"#)
    }

    fn update_texts(unread: &[(&str, &str)]) -> Vec<String> {
        let entries: Vec<InboxEntry> =
            unread.iter().enumerate().map(|(index, (from, text))| entry(index, from, text)).collect();
        let updates = lead_updates(&entries);
        let entry_count: usize = updates.iter().map(|update| update.entries().len()).sum();
        assert_eq!(entry_count, entries.len(), "each entry belongs to one update");
        let text = |update: &LeadUpdate| match update {
            LeadUpdate::Message { message, times, .. } => format!("{}:{times}", message.from),
            LeadUpdate::Idle { names, .. } => names.join(","),
        };
        updates.iter().map(text).collect()
    }

    #[test]
    fn idle_notifications_without_details_become_one_update() {
        let (without_details, completed) =
            (idle(""), idle(r#","completedTaskId":"3","completedStatus":"completed""#));
        let unread = [
            ("ann", &*without_details),
            ("bob", "hello"),
            ("ann", &*without_details),
            ("cat", &*completed),
            ("bob", &*without_details),
        ];
        assert_eq!(update_texts(&unread), ["bob:1", "cat:1", "ann,bob"]);
    }

    #[test]
    fn repeated_messages_are_merged_and_requests_are_not() {
        let request = r#"{"type":"permission_request","request_id":"p"}"#;
        let unread = [("ann", "done"), ("bob", "done"), ("ann", "done"), ("ann", request), ("ann", request)];
        assert_eq!(update_texts(&unread), ["ann:2", "bob:1", "ann:1", "ann:1"]);
        let alternating = [("ann", "fail"), ("ann", "pass"), ("ann", "fail")];
        assert_eq!(
            update_texts(&alternating),
            ["ann:1", "ann:1", "ann:1"],
            "after a merge, pass would be the last message"
        );
    }
}
