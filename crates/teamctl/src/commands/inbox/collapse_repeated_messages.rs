//! Collapses repeated messages of each sender: if a member sends the same message several times in
//! a row, the message is shown once. Messages from other members in between do not matter.

use protocol::inbox_file::InboxEntry;
use protocol::inbox_message_payload::IdleNotification;
use std::collections::HashMap;

/// Consecutive entries of one sender with the same content.
pub(super) struct RepeatedEntry<'e> {
    pub(super) last: &'e InboxEntry,
    pub(super) count: usize,
}

/// The entries without those that their sender has repeated later.
pub(super) fn collapse_repeats(entries: &[InboxEntry]) -> Vec<RepeatedEntry<'_>> {
    let mut counts = vec![1; entries.len()];
    let mut last_of_sender = HashMap::new();
    for (index, entry) in entries.iter().enumerate() {
        let Ok(message) = &entry.message else { continue };
        let previous = last_of_sender.insert(&message.from, index);
        if let Some(previous) = previous.filter(|previous| is_repeat(&entries[*previous], entry)) {
            counts[index] += std::mem::take(&mut counts[previous]);
        }
    }
    let entries = entries.iter().zip(counts).map(|(last, count)| RepeatedEntry { last, count });
    entries.filter(|entry| entry.count > 0).collect()
}

/// Whether the message `entry` repeats `previous`, the previous message of the same sender. A text
/// message repeats a message with the same text. A report that only says that a turn has ended
/// repeats an earlier report of this kind. A read message and an unread message never repeat each
/// other.
fn is_repeat(previous: &InboxEntry, entry: &InboxEntry) -> bool {
    let (Ok(first), Ok(second)) = (&previous.message, &entry.message) else { return false };
    let are_turn_ends = || [first, second].iter().all(|message| IdleNotification::is_bare_in(&message.text));
    previous.unread().is_some() == entry.unread().is_some()
        && (second.repeats(first) || first.from == second.from && are_turn_ends())
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: &str = r#"{"type":"idle_notification","from":"x","timestamp":"","idleReason":"available"}"#;
    const REQUEST: &str = r#"{"type":"permission_request","request_id":"p"}"#;

    /// Returns the index of the last message of each repeat, and the number of messages.
    fn collapse(messages: &[(&str, &str, bool)]) -> Vec<(usize, usize)> {
        let raw = |(from, text, read): &(&str, &str, bool)| {
            serde_json::json!({"from": from, "text": text, "timestamp": "", "read": read}).to_string()
        };
        let entries: Vec<InboxEntry> =
            messages.iter().enumerate().map(|(index, entry)| InboxEntry::parse(index, &raw(entry))).collect();
        collapse_repeats(&entries).into_iter().map(|repeated| (repeated.last.index, repeated.count)).collect()
    }

    #[test]
    fn repeats_are_collapsed_across_messages_of_other_senders() {
        let idle = ["tim", "tom", "tim", "tom", "tim", "tom"].map(|from| (from, IDLE, false));
        assert_eq!(collapse(&idle), [(4, 3), (5, 3)]);
        let texts = [("tim", "done", false), ("tom", "done", false), ("tim", "done", false)];
        assert_eq!(collapse(&texts), [(1, 1), (2, 2)]);
    }

    #[test]
    fn different_message_of_the_same_sender_ends_the_repeats() {
        let different = ["fail", "pass", "fail"].map(|text| ("tim", text, false));
        assert_eq!(collapse(&different), [(0, 1), (1, 1), (2, 1)], "the order of fail and pass is visible");
        let partly_read = [("tim", IDLE, true), ("tom", IDLE, false), ("tim", IDLE, false)];
        assert_eq!(collapse(&partly_read), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(collapse(&[("tim", REQUEST, false), ("tim", REQUEST, false)]), [(0, 1), (1, 1)]);
    }
}
