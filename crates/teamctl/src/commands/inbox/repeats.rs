//! What a member says once more is shown once, where it said it last, with how often: also where others have spoken in between.

use protocol::message::InboxEntry;
use protocol::payload::{IdleNotification, Payload};
use std::collections::HashMap;

/// Each entry that nobody has said again, and how often it was said.
pub(super) fn collapse_repeats(entries: &[InboxEntry]) -> Vec<(&InboxEntry, usize)> {
    let mut times = vec![1; entries.len()];
    let mut last = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        let Ok(message) = &entry.message else { continue };
        let before = last.insert(&message.from, at);
        if let Some(before) = before.filter(|before| is_repeat(&entries[*before], entry)) {
            times[at] += std::mem::take(&mut times[before]);
        }
    }
    entries.iter().zip(times).filter(|(_, times)| *times > 0).collect()
}

/// Whether it says what the one of that member before it said: the end of another turn, or the same words again. Read is
/// not the same as unread.
fn is_repeat(before: &InboxEntry, entry: &InboxEntry) -> bool {
    let (Ok(first), Ok(second)) = (&before.message, &entry.message) else { return false };
    let says_the_same = || match IdleNotification::is_bare_in(&first.text) {
        true => IdleNotification::is_bare_in(&second.text),
        false => first.text == second.text && Payload::detect_type(&first.text).is_none(),
    };
    first.from == second.from && before.unread().is_some() == entry.unread().is_some() && says_the_same()
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE: &str = r#"{"type":"idle_notification","from":"x","timestamp":"","idleReason":"available"}"#;
    const ASKS: &str = r#"{"type":"permission_request","request_id":"p"}"#;

    fn collapsed_senders(said: &[(&str, &str, bool)]) -> Vec<(usize, usize)> {
        let raw = |(from, text, read): &(&str, &str, bool)| {
            serde_json::json!({"from": from, "text": text, "timestamp": "", "read": read}).to_string()
        };
        let entries: Vec<InboxEntry> =
            said.iter().enumerate().map(|(at, entry)| InboxEntry::parse(at, &raw(entry))).collect();
        collapse_repeats(&entries).into_iter().map(|(entry, times)| (entry.index, times)).collect()
    }

    #[test]
    fn who_says_the_same_in_turn_with_others_is_told_once_at_the_last() {
        let turns = ["tim", "tom", "tim", "tom", "tim", "tom"].map(|from| (from, IDLE, false));
        assert_eq!(collapsed_senders(&turns), [(4, 3), (5, 3)]);
        let words = [("tim", "done", false), ("tom", "done", false), ("tim", "done", false)];
        assert_eq!(collapsed_senders(&words), [(1, 1), (2, 2)]);
    }

    #[test]
    fn what_another_word_of_its_own_parts_is_not_the_same_again() {
        let changes = ["fail", "pass", "fail"].map(|text| ("tim", text, false));
        assert_eq!(collapsed_senders(&changes), [(0, 1), (1, 1), (2, 1)], "it would read as passed");
        let read = [("tim", IDLE, true), ("tom", IDLE, false), ("tim", IDLE, false)];
        assert_eq!(collapsed_senders(&read), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(collapsed_senders(&[("tim", ASKS, false), ("tim", ASKS, false)]), [(0, 1), (1, 1)]);
    }
}
