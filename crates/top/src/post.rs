//! The stream of messages: what is new in each inbox since the look before, kept up to a bound.

use crate::look::{clock, today};
use crate::sight::Letter;
use protocol::message::InboxEntry;
use protocol::name::AgentName;
use protocol::timestamp::parse_iso8601;
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{InboxCursor, Team};
use view::suggested_commands::SuggestedCommands;
use view::text::{message_text, single_line};

/// The most letters that are kept, the newest.
const MOST: usize = 1000;
/// The most of a letter that is kept, in bytes.
const LONGEST: usize = 16 << 10;
/// The most of what it is about.
const ABOUT: usize = 200;

/// The inboxes as they were seen last.
#[derive(Debug, Default)]
pub(crate) struct Post {
    /// How a command about the team is typed.
    typed: SuggestedCommands,
    marks: BTreeMap<AgentName, InboxCursor>,
    letters: Vec<Arc<Letter>>,
    numbered: u64,
    /// On which day their times were put into words.
    day: String,
}

impl Post {
    pub(crate) fn of(typed: &SuggestedCommands) -> Post {
        Post { typed: typed.clone(), ..Post::default() }
    }

    /// Takes what is new for that member; how many of its messages are unread, none where its inbox can't be read.
    pub(crate) fn look(&mut self, team: &Team, name: &AgentName) -> Option<usize> {
        let (new, mark) = team.inbox(name).read_since(self.marks.get(name)).ok()?;
        if mark.is_reset() {
            self.letters.retain(|letter| letter.to != name.as_str());
        }
        let mut at = 0;
        for entry in &new {
            self.numbered += 1;
            let letter = letter(self.numbered, name, entry, at, &self.typed);
            at = letter.at;
            self.take(letter);
        }
        let unread = mark.unread_count();
        self.marks.insert(name.clone(), mark);
        Some(unread)
    }

    /// One that says once more what its sender has said last to the same one counts there, and stands where the last does.
    fn take(&mut self, letter: Letter) {
        let before =
            self.letters.iter_mut().rfind(|last| (&last.from, &last.to) == (&letter.from, &letter.to));
        match before.filter(|before| before.text == letter.text) {
            Some(last) => {
                let last = Arc::make_mut(last);
                (last.at, last.clock, last.times) = (letter.at, letter.clock, last.times + 1);
            }
            None => self.letters.push(Arc::new(letter)),
        }
    }

    /// The newest letters, oldest first.
    pub(crate) fn letters(&mut self) -> Vec<Arc<Letter>> {
        self.letters.sort_by_key(|letter| letter.at);
        let surplus = self.letters.len().saturating_sub(MOST);
        self.letters.drain(..surplus);
        let day = today();
        if std::mem::replace(&mut self.day, day.clone()) != day {
            for letter in &mut self.letters {
                let clock = clock(letter.at);
                Arc::make_mut(letter).clock = clock;
            }
        }
        self.letters.clone()
    }

    /// How far each inbox was looked through.
    pub(crate) fn marks(&self) -> &BTreeMap<AgentName, InboxCursor> {
        &self.marks
    }
}

/// One that does not say when it was sent stands behind the one before it.
fn letter(number: u64, to: &AgentName, entry: &InboxEntry, before: u64, typed: &SuggestedCommands) -> Letter {
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
    let about = single_line(about.lines().next().unwrap_or_default()).chars().take(ABOUT).collect();
    let text = cut(text, to, typed);
    Letter { number, at, clock: clock(at), from, to: to.to_string(), about, text, times: 1 }
}

fn cut(mut text: String, to: &AgentName, typed: &SuggestedCommands) -> String {
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str(&format!("…\n\nAll of it: {}", typed.command_for_name("inbox", to.as_str(), &[])));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(raw: &str) -> Letter {
        letter(
            1,
            &AgentName::new_unchecked("bob"),
            &InboxEntry::parse(3, raw),
            7,
            &SuggestedCommands::default(),
        )
    }

    #[test]
    fn what_its_sender_said_last_is_told_once_however_others_speak_in_between() {
        let mut post = Post::default();
        let of = |number, from: &str, text: &str| {
            let at = format!("1970-01-01T00:00:0{number}.000Z");
            let raw = format!(r#"{{"from":"{from}","text":"{text}","timestamp":"{at}"}}"#);
            letter(number, &AgentName::lead(), &InboxEntry::parse(0, &raw), 0, &SuggestedCommands::default())
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
            post.take(of(number, from, text));
        }
        let told: Vec<_> = post.letters().iter().map(|it| (it.number, it.at, it.times)).collect();
        assert_eq!(told, [(3, 3_000, 1), (1, 4_000, 3), (5, 5_000, 1), (6, 6_000, 1)]);
    }

    #[test]
    fn a_letter_is_told_by_its_summary_or_how_it_begins_and_a_payload_in_words() {
        let plain = of(r#"{"from":"ann","text":"one\ntwo","timestamp":"1970-01-01T00:00:01Z"}"#);
        assert_eq!((plain.at, plain.about.as_str(), plain.text.as_str()), (1000, "one", "one\ntwo"));
        let summed = of(r#"{"from":"ann","text":"one","summary":"s","timestamp":"?"}"#);
        assert_eq!((summed.at, summed.about.as_str()), (7, "s"));
        let idle = of(
            r#"{"from":"ann","text":"{\"type\":\"idle_notification\",\"from\":\"ann\",\"idleReason\":\"available\"}","timestamp":"?"}"#,
        );
        assert_eq!(idle.about, "is idle");
        assert_eq!(of("7").about, "entry 3 is no message");
    }

    #[test]
    fn a_long_letter_is_cut_between_two_characters_and_says_where_the_rest_is() {
        let cut = cut("ä".repeat(LONGEST), &AgentName::new_unchecked("bob"), &SuggestedCommands::default());
        assert!(cut.len() < LONGEST + 100 && cut.ends_with("All of it: teamctl inbox bob"), "{}", cut.len());
    }
}
