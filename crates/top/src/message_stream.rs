//! The stream of messages: what is new in each inbox since the look before, kept up to a bound.

use crate::snapshot::MessageItem;
use crate::snapshot_reader::{clock_time, today};
use client::suggested_commands::SuggestedCommands;
use client::text::{message_text, single_line};
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use protocol::timestamp::parse_iso8601;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{InboxCursor, Team};

/// The most letters that are kept, the newest.
const MAX_MESSAGES: usize = 1000;
/// The most of a letter that is kept, in bytes.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The most of what it is about.
const MAX_SUMMARY_CHARS: usize = 200;

/// The inboxes as they were seen last.
#[derive(Debug, Default)]
pub(crate) struct MessageStream {
    /// How a command about the team is typed.
    suggested_commands: SuggestedCommands,
    cursors: BTreeMap<AgentName, InboxCursor>,
    messages: Vec<Arc<MessageItem>>,
    last_number: u64,
    /// On which day their times were put into words.
    day: String,
}

impl MessageStream {
    pub(crate) fn new(typed: &SuggestedCommands) -> MessageStream {
        MessageStream { suggested_commands: typed.clone(), ..MessageStream::default() }
    }

    /// Takes what is new for that member; how many of its messages are unread, none where its inbox can't be read.
    pub(crate) fn read_inbox(&mut self, team: &Team, name: &AgentName) -> Option<usize> {
        let (new, mark) = team.inbox(name).read_since(self.cursors.get(name)).ok()?;
        if mark.is_reset() {
            self.messages.retain(|letter| letter.to != name.as_str());
        }
        let mut at = 0;
        for entry in &new {
            self.last_number += 1;
            let letter = message_item(self.last_number, name, entry, at, &self.suggested_commands);
            at = letter.at;
            self.add(letter);
        }
        let unread = mark.unread_count();
        self.cursors.insert(name.clone(), mark);
        Some(unread)
    }

    /// One that says once more what its sender has said last to the same one counts there, and stands where the last does.
    fn add(&mut self, letter: MessageItem) {
        let before =
            self.messages.iter_mut().rfind(|last| (&last.from, &last.to) == (&letter.from, &letter.to));
        match before.filter(|before| before.text == letter.text) {
            Some(last) => {
                let last = Arc::make_mut(last);
                (last.at, last.time_text, last.count) = (letter.at, letter.time_text, last.count + 1);
            }
            None => self.messages.push(Arc::new(letter)),
        }
    }

    /// The newest letters, oldest first.
    pub(crate) fn messages(&mut self) -> Vec<Arc<MessageItem>> {
        self.messages.sort_by_key(|letter| letter.at);
        let surplus = self.messages.len().saturating_sub(MAX_MESSAGES);
        self.messages.drain(..surplus);
        let day = today();
        if std::mem::replace(&mut self.day, day.clone()) != day {
            for letter in &mut self.messages {
                let clock = clock_time(letter.at);
                Arc::make_mut(letter).time_text = clock;
            }
        }
        self.messages.clone()
    }

    /// How far each inbox was looked through.
    pub(crate) fn cursors(&self) -> &BTreeMap<AgentName, InboxCursor> {
        &self.cursors
    }
}

/// One that does not say when it was sent stands behind the one before it.
fn message_item(
    number: u64,
    to: &AgentName,
    entry: &InboxEntry,
    before: u64,
    typed: &SuggestedCommands,
) -> MessageItem {
    let (from, at, about, text) = match &entry.message {
        Ok(message) => {
            let text = message_text(&message.text);
            let about = message.summary.clone().unwrap_or_else(|| text.trim_start().to_owned());
            (message.from.clone(), parse_iso8601(&message.timestamp), about, text)
        }
        Err(fault) => {
            ("?".to_owned(), None, format!("entry {} is no message", entry.index), fault.to_string())
        }
    };
    let at = at.unwrap_or(before);
    let about =
        single_line(about.lines().next().unwrap_or_default()).chars().take(MAX_SUMMARY_CHARS).collect();
    let text = truncate_text(text, to, typed);
    MessageItem {
        number,
        at,
        time_text: clock_time(at),
        from,
        to: to.to_string(),
        summary: about,
        text,
        count: 1,
    }
}

fn truncate_text(mut text: String, to: &AgentName, typed: &SuggestedCommands) -> String {
    if text.len() > MAX_TEXT_BYTES {
        let end = (0..=MAX_TEXT_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!("…\n\nAll of it: {}", typed.command_for_name("inbox", to.as_str(), &[])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(raw: &str) -> MessageItem {
        message_item(
            1,
            &AgentName::new_unchecked("bob"),
            &InboxEntry::parse(3, raw),
            7,
            &SuggestedCommands::default(),
        )
    }

    #[test]
    fn repeated_message_is_counted_per_sender() {
        let mut post = MessageStream::default();
        let of = |number, from: &str, text: &str| {
            let at = format!("1970-01-01T00:00:0{number}.000Z");
            let raw = format!(r#"{{"from":"{from}","text":"{text}","timestamp":"{at}"}}"#);
            message_item(
                number,
                &AgentName::lead(),
                &InboxEntry::parse(0, &raw),
                0,
                &SuggestedCommands::default(),
            )
        };
        let said = [
            ("ann", "done"),
            ("ann", "done"),
            ("bob", "done"),
            ("ann", "done"),
            ("bob", "no"),
            ("bob", "done"),
        ];
        for (number, (from, text)) in (1..).zip(said) {
            post.add(of(number, from, text));
        }
        let told: Vec<_> = post.messages().iter().map(|it| (it.number, it.at, it.count)).collect();
        assert_eq!(told, [(3, 3_000, 1), (1, 4_000, 3), (5, 5_000, 1), (6, 6_000, 1)]);
    }

    #[test]
    fn summary_falls_back_to_the_first_line() {
        let plain = message(r#"{"from":"ann","text":"one\ntwo","timestamp":"1970-01-01T00:00:01Z"}"#);
        assert_eq!((plain.at, plain.summary.as_str(), plain.text.as_str()), (1000, "one", "one\ntwo"));
        let summed = message(r#"{"from":"ann","text":"one","summary":"s","timestamp":"?"}"#);
        assert_eq!((summed.at, summed.summary.as_str()), (7, "s"));
        let idle = message(
            r#"{"from":"ann","text":"{\"type\":\"idle_notification\",\"from\":\"ann\",\"idleReason\":\"available\"}","timestamp":"?"}"#,
        );
        assert_eq!(idle.summary, "is idle");
        assert_eq!(message("7").summary, "entry 3 is no message");
    }

    #[test]
    fn long_message_is_truncated_with_a_hint() {
        let cut = truncate_text(
            "ä".repeat(MAX_TEXT_BYTES),
            &AgentName::new_unchecked("bob"),
            &SuggestedCommands::default(),
        );
        assert!(
            cut.len() < MAX_TEXT_BYTES + 100 && cut.ends_with("All of it: teamctl inbox bob"),
            "{}",
            cut.len()
        );
    }
}
