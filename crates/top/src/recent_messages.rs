//! The list of messages on the screen. Each snapshot adds the new messages of every inbox. Only the
//! newest [`MAX_MESSAGES`] messages are kept.

use crate::clock_time::ScreenClock;
use crate::team_snapshot_for_screen::MessageItem;
use client::describe_message_for_people::message_text;
use client::suggested_commands::SuggestedCommands;
use protocol::inbox_file::InboxEntry;
use protocol::single_line::single_line;
use protocol::team_and_member_names::MemberName;
use protocol::timestamp::parse_iso8601;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{InboxCursor, Team};

/// How many messages are kept.
const MAX_MESSAGES: usize = 1000;
/// How much of a message's text is kept, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// How much of a message's summary is kept, in characters.
const MAX_SUMMARY_CHARS: usize = 200;

/// The messages of all inboxes, and how far each inbox was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageStream {
    /// How a person types a command about the team.
    suggested_commands: SuggestedCommands,
    cursors: BTreeMap<MemberName, InboxCursor>,
    /// The messages, not sorted.
    messages: Vec<Arc<MessageItem>>,
    /// The number of the message that was read last.
    last_number: u64,
    /// The date on which the messages' times were formatted.
    day: String,
}

impl MessageStream {
    pub(crate) fn new(commands: &SuggestedCommands) -> MessageStream {
        MessageStream { suggested_commands: commands.clone(), ..MessageStream::default() }
    }

    /// Reads a member's inbox and adds its new messages to the list. Returns how many messages in
    /// the inbox are unread, `None` if the inbox cannot be read.
    pub(crate) fn read_inbox(&mut self, team: &Team, name: &MemberName) -> Option<usize> {
        let (new, cursor) = team.inbox(name).read_since(self.cursors.get(name)).ok()?;
        if cursor.is_reset() {
            self.messages.retain(|message| message.to != name.as_str());
        }
        let mut at = 0;
        for entry in &new {
            at = self.add_entry(name, entry, at);
        }
        let unread = cursor.unread_count();
        self.cursors.insert(name.clone(), cursor);
        Some(unread)
    }

    /// Adds an entry of a member's inbox to the list. Returns the time of the entry in milliseconds
    /// since the epoch. An entry without a valid time gets `before`, the time of the previous
    /// entry.
    pub(crate) fn add_entry(&mut self, name: &MemberName, entry: &InboxEntry, before: u64) -> u64 {
        self.last_number += 1;
        let message = message_item(self.last_number, name, entry, before, &self.suggested_commands);
        let at = message.at;
        self.add(message);
        at
    }

    /// Adds a message to the list. If the sender's last message to the same member has the same
    /// text, only the time and the count of that list item are updated.
    fn add(&mut self, message: MessageItem) {
        let before =
            self.messages.iter_mut().rfind(|last| (&last.from, &last.to) == (&message.from, &message.to));
        match before.filter(|before| before.text == message.text) {
            Some(last) => {
                let last = Arc::make_mut(last);
                (last.at, last.time_text, last.count) = (message.at, message.time_text, last.count + 1);
            }
            None => {
                self.messages.push(Arc::new(message));
                if self.messages.len() > 2 * MAX_MESSAGES {
                    self.drop_oldest();
                }
            }
        }
    }

    /// Sorts the messages, and keeps only the newest.
    fn drop_oldest(&mut self) {
        self.messages.sort_by_key(|message| message.at);
        let surplus = self.messages.len().saturating_sub(MAX_MESSAGES);
        self.messages.drain(..surplus);
    }

    /// The newest messages, oldest first.
    pub(crate) fn messages(&mut self, clock: &ScreenClock) -> Vec<Arc<MessageItem>> {
        self.drop_oldest();
        let day = clock.day();
        let is_new_day = std::mem::replace(&mut self.day, day.clone()) != day;
        for message in &mut self.messages {
            if is_new_day || message.time_text.is_empty() {
                let time_text = clock.text(message.at);
                Arc::make_mut(message).time_text = time_text;
            }
        }
        self.messages.clone()
    }

    /// How far each inbox was read.
    pub(crate) fn cursors(&self) -> &BTreeMap<MemberName, InboxCursor> {
        &self.cursors
    }
}

/// The list item for an inbox entry. If the entry has no valid time, the item gets `before`, the
/// time of the previous entry. Times are in milliseconds since the epoch. The item's `time_text` is
/// empty; [`MessageStream::messages`] fills it in.
fn message_item(
    number: u64,
    to: &MemberName,
    entry: &InboxEntry,
    before: u64,
    commands: &SuggestedCommands,
) -> MessageItem {
    let (from, at, summary, text) = match &entry.message {
        Ok(message) => {
            let text = message_text(&message.text);
            let summary = message.summary.clone().unwrap_or_else(|| text.trim_start().to_owned());
            (message.from.clone(), parse_iso8601(&message.timestamp), summary, text)
        }
        Err(error) => {
            ("?".to_owned(), None, format!("entry {} is no message", entry.index), error.to_string())
        }
    };
    let at = at.unwrap_or(before);
    let summary =
        single_line(summary.lines().next().unwrap_or_default()).chars().take(MAX_SUMMARY_CHARS).collect();
    let text = truncate_text(text, to, commands);
    MessageItem { number, at, time_text: String::new(), from, to: to.to_string(), summary, text, count: 1 }
}

fn truncate_text(mut text: String, to: &MemberName, commands: &SuggestedCommands) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!("…\n\nAll of it: {}", commands.command_for_name("inbox", to.as_str(), &[])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;

    fn message(raw: &str) -> MessageItem {
        message_item(
            1,
            &MemberName::new_unchecked("bob"),
            &InboxEntry::parse(3, raw),
            7,
            &SuggestedCommands::default(),
        )
    }

    #[test]
    fn repeated_message_is_counted_per_sender() {
        let mut stream = MessageStream::default();
        let item = |number, from: &str, text: &str| {
            let at = format!("1970-01-01T00:00:0{number}.000Z");
            let raw = format!(r#"{{"from":"{from}","text":"{text}","timestamp":"{at}"}}"#);
            message_item(
                number,
                &MemberName::lead(),
                &InboxEntry::parse(0, &raw),
                0,
                &SuggestedCommands::default(),
            )
        };
        let texts = [
            ("ann", "done"),
            ("ann", "done"),
            ("bob", "done"),
            ("ann", "done"),
            ("bob", "no"),
            ("bob", "done"),
        ];
        for (number, (from, text)) in (1..).zip(texts) {
            stream.add(item(number, from, text));
        }
        let entries: Vec<_> = stream
            .messages(&ScreenClock::at(0, TimeZone::UTC))
            .iter()
            .map(|item| (item.number, item.at, item.count))
            .collect();
        assert_eq!(entries, [(3, 3_000, 1), (1, 4_000, 3), (5, 5_000, 1), (6, 6_000, 1)]);
    }

    #[test]
    fn summary_falls_back_to_the_first_line() {
        let without_summary =
            message(r#"{"from":"ann","text":"one\ntwo","timestamp":"1970-01-01T00:00:01Z"}"#);
        assert_eq!(
            (without_summary.at, without_summary.summary.as_str(), without_summary.text.as_str()),
            (1000, "one", "one\ntwo")
        );
        let with_summary = message(r#"{"from":"ann","text":"one","summary":"s","timestamp":"?"}"#);
        assert_eq!((with_summary.at, with_summary.summary.as_str()), (7, "s"));
        let idle = message(
            r#"{"from":"ann","text":"{\"type\":\"idle_notification\",\"from\":\"ann\",\"idleReason\":\"available\"}","timestamp":"?"}"#,
        );
        assert_eq!(idle.summary, "is idle");
        assert_eq!(message("7").summary, "entry 3 is no message");
    }

    #[test]
    fn long_message_is_truncated_with_a_hint() {
        let truncated = truncate_text(
            "ä".repeat(MAX_TEXT_BYTES),
            &MemberName::new_unchecked("bob"),
            &SuggestedCommands::default(),
        );
        assert!(
            truncated.len() < MAX_TEXT_BYTES + 100 && truncated.ends_with("All of it: teamctl inbox bob"),
            "{}",
            truncated.len()
        );
    }
}
