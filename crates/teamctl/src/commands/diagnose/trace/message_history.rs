//! What became of one message, from the files and the event log. The log tells of inboxes and turns, not of messages:
//! which line belongs to this one follows from their order. Pure.

use super::find_message::{CopyLocation, MessageCopy};
use client::event_log::EventLog;
use client::event_log::event_time;
use protocol::event::{Event, EventKind};
use protocol::member_request::{MemberRequest, parse_answer};
use protocol::message::InboxEntry;
use protocol::name::{AgentName, TeamName};
use protocol::payload::Payload;
use protocol::timestamp::parse_iso8601;
use serde_json::{Value, json};
use store::message_id;

/// Clocks of those who send and of the daemon are the same machine's, but not read at the same moment, ms.
const CLOCK_SKEW_MS: u64 = 1_000;

/// How far it has come; times are ms since the epoch.
#[derive(Debug, PartialEq)]
pub(super) struct MessageHistory {
    /// When teamd saw it in the inbox.
    pub(super) stored: Option<u64>,
    /// The turn that its recipient was given it with: what that is about, and when it began.
    pub(super) delivered: Option<(String, u64)>,
    pub(super) read: ReadState,
    pub(super) reply: Option<MessageReply>,
}

/// Whether its recipient has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadState {
    Unread,
    /// Others have taken it out, and nobody has told that its recipient had read it.
    Removed,
    /// Since then; none: nobody has told when.
    ReadAt(Option<u64>),
}

/// What its recipient said to its sender.
#[derive(Debug, PartialEq)]
pub(super) struct MessageReply {
    pub(super) at: u64,
    /// `text`, or the payload's type.
    kind: String,
    summary: Option<String>,
    id: String,
}

impl MessageReply {
    pub(super) fn to_json(&self) -> Value {
        json!({"at": self.at, "kind": self.kind, "summary": self.summary, "message_id": self.id})
    }

    pub(super) fn result_text(&self, copy: &MessageCopy) -> String {
        let summary = self.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
        match self.kind.as_str() {
            "text" => format!("by {} with {}{summary}", copy.to, &self.id[..12]),
            "idle_notification" => format!("by {}'s word that it is idle, {}", copy.to, &self.id[..12]),
            kind => format!("by {} with a {kind}, {}", copy.to, &self.id[..12]),
        }
    }
}

/// What the log tells of that member, in this team of that name.
pub(super) fn member_events(log: &EventLog, team: &TeamName, name: &AgentName) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let all = log.events_of(name, &["\"team_"]).into_iter();
    for event in all.filter(|event| event.team.as_ref() == Some(team)) {
        match event.kind {
            EventKind::TeamCreated | EventKind::TeamDeleted => events.clear(),
            _ if event.member.as_ref() == Some(name) => events.push(event),
            _ => {}
        }
    }
    events
}

pub(super) fn message_history(
    copy: &MessageCopy,
    events: &[Event],
    answers: &[InboxEntry],
) -> MessageHistory {
    let from = stored_event(copy, events);
    let since = from.map_or(&[][..], |at| &events[at..]);
    // A short turn may be told of before the look that found the message.
    let sent = events.partition_point(|event| event_time(event) < copy.sent_at());
    let turns = from.map_or(&[][..], |at| &events[at.min(sent)..]);
    let read = match (copy.message.read, copy.location, read_at(since)) {
        (false, CopyLocation::InInbox { .. }, _) => ReadState::Unread,
        (false, CopyLocation::InJournalOnly, None) => ReadState::Removed,
        (_, _, at) => ReadState::ReadAt(at),
    };
    MessageHistory {
        stored: from.map(|at| event_time(&events[at])),
        delivered: delivering_turn(copy, turns, read),
        read,
        reply: first_reply(copy, answers),
    }
}

/// Which line tells of it: the one with its place, else the first from its sender since it was sent.
fn stored_event(copy: &MessageCopy, events: &[Event]) -> Option<usize> {
    let place = |event: &Event| match &event.kind {
        EventKind::MessageStored { index, from, .. } if *from == copy.message.from => Some(*index),
        _ => None,
    };
    let since = |event: &Event| event_time(event) + CLOCK_SKEW_MS >= copy.sent_at();
    let all: Vec<(usize, usize)> = events
        .iter()
        .enumerate()
        .filter(|(_, event)| since(event))
        .filter_map(|(at, event)| Some((at, place(event)?)))
        .collect();
    let same = |(_, index): &&(usize, usize)| copy.location == CopyLocation::InInbox { index: *index };
    all.iter().find(same).or(all.first()).map(|(at, _)| *at)
}

/// Messages are read in their order: it is read when no more are unread than came behind it.
fn read_at(since: &[Event]) -> Option<u64> {
    let mut behind = 0;
    since.iter().skip(1).find_map(|event| match event.kind {
        EventKind::MessageStored { .. } => {
            behind += 1;
            None
        }
        EventKind::MessageRead { unread } => (unread <= behind).then(|| event_time(event)),
        _ => None,
    })
}

/// The last turn that began before it was read, a moment before or behind; of one that is not read yet, one on its
/// sender's word that goes on.
fn delivering_turn(copy: &MessageCopy, since: &[Event], read: ReadState) -> Option<(String, u64)> {
    let turn = |event: &Event| match &event.kind {
        EventKind::MemberActive { summary: about } => Some(Some((about.clone(), event_time(event)))),
        EventKind::MemberIdle { .. } => Some(None),
        _ => None,
    };
    let turns: Vec<Option<(String, u64)>> = since.iter().filter_map(turn).collect();
    match read {
        ReadState::ReadAt(Some(read)) => {
            turns.into_iter().flatten().take_while(|(_, at)| *at <= read + CLOCK_SKEW_MS).last()
        }
        ReadState::ReadAt(None) | ReadState::Removed => None,
        ReadState::Unread => turns.last().cloned().flatten().filter(|(about, _)| is_about(copy, about)),
    }
}

fn is_about(copy: &MessageCopy, about: &str) -> bool {
    let from = format!("message from {}", copy.message.from);
    about.starts_with(&from) || about.ends_with("and more") || copy.message.from == "user"
}

/// The answer to what it asks; else a text, else any word.
fn first_reply(copy: &MessageCopy, answers: &[InboxEntry]) -> Option<MessageReply> {
    let said: Vec<MessageReply> =
        answers.iter().filter_map(|entry| reply_after(entry, copy.sent_at())).collect();
    if let Some(asked) = MemberRequest::parse(&copy.message.text) {
        let is_it = |entry: &&InboxEntry| {
            let text = entry.message.as_ref().ok().map(|message| message.text.as_str());
            text.and_then(parse_answer).is_some_and(|(id, _)| id == *asked.id())
        };
        return answers.iter().find(is_it).and_then(as_reply);
    }
    let text = said.iter().position(|answer| answer.kind == "text").unwrap_or(0);
    said.into_iter().nth(text)
}

fn reply_after(entry: &InboxEntry, since: u64) -> Option<MessageReply> {
    as_reply(entry).filter(|answer| answer.at > since)
}

fn as_reply(entry: &InboxEntry) -> Option<MessageReply> {
    let message = entry.message.as_ref().ok()?;
    Some(MessageReply {
        at: parse_iso8601(&message.timestamp)?,
        kind: Payload::parse(&message.text).map_or("text", |payload| payload.type_name()).to_owned(),
        summary: message.summary.clone(),
        id: message_id(message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::timestamp::iso8601;
    use std::path::Path;

    fn event(at: u64, what: Value) -> Event {
        let mut event = json!({"time": iso8601(at), "team": "t", "member": "ann"});
        event.as_object_mut().unwrap().extend(what.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn stored_event(at: u64, index: usize, from: &str) -> Event {
        event(at, json!({"event": "message_stored", "index": index, "from": from, "kind": "text"}))
    }

    fn read(at: u64, unread: usize) -> Event {
        event(at, json!({"event": "message_read", "unread": unread}))
    }

    fn active(at: u64, about: &str) -> Event {
        event(at, json!({"event": "member_active", "summary": about}))
    }

    #[test]
    fn the_read_that_leaves_no_more_than_came_behind_is_its_own() {
        let all =
            [stored_event(10, 1, "bob"), stored_event(20, 2, "cat"), read(30, 2), read(40, 1), read(50, 0)];
        assert_eq!((read_at(&all), read_at(&all[1..]), read_at(&all[4..])), (Some(40), Some(50), None));
    }

    #[test]
    fn its_turn_is_the_last_that_began_before_it_was_read() {
        let team = tempfile::tempdir().unwrap();
        let copy = copy(team.path(), "bob", 10_000);
        let turns =
            [active(11_000, "message from cat"), active(12_000, "message from bob"), active(19_000, "x")];
        let log = [&[stored_event(10_100, 0, "bob")][..], &turns, &[read(12_500, 0)]].concat();
        let at = |read| delivering_turn(&copy, &log, read).map(|(_, at)| at);
        assert_eq!(at(ReadState::ReadAt(Some(12_500))), Some(12_000));
        assert_eq!(
            (at(ReadState::Unread), at(ReadState::ReadAt(None))),
            (None, None),
            "a turn on something else goes on"
        );
        let going = [stored_event(10_100, 0, "bob"), active(12_000, "message from bob and more")];
        assert_eq!(delivering_turn(&copy, &going, ReadState::Unread).map(|(_, at)| at), Some(12_000));
    }

    #[test]
    fn a_line_of_its_place_is_its_own_and_none_of_before_is() {
        let team = tempfile::tempdir().unwrap();
        let copy = copy(team.path(), "bob", 10_000);
        let log =
            [stored_event(5_000, 0, "bob"), stored_event(10_100, 1, "bob"), stored_event(10_200, 0, "bob")];
        assert_eq!(super::stored_event(&copy, &log), Some(2));
        assert_eq!(super::stored_event(&copy, &log[..2]), Some(1), "others may have taken some before it");
        assert_eq!(super::stored_event(&copy, &log[..1]), None);
    }

    #[test]
    fn what_others_took_out_is_read_only_where_the_log_says_so() {
        let team = tempfile::tempdir().unwrap();
        let gone = MessageCopy { location: CopyLocation::InJournalOnly, ..copy(team.path(), "bob", 10_000) };
        let log = [stored_event(10_100, 0, "bob"), read(12_500, 0)];
        assert_eq!(message_history(&gone, &log, &[]).read, ReadState::ReadAt(Some(12_500)));
        assert_eq!(message_history(&gone, &log[..1], &[]).read, ReadState::Removed);
    }

    fn copy(root: &Path, from: &str, at: u64) -> MessageCopy {
        let root = store::Root::open(&root.join("r"), root, store::Durability::Process).unwrap();
        let config = protocol::team_config::TeamConfig::parse(r#"{"name":"t","members":[]}"#).unwrap();
        let message = protocol::message::Message::new(&AgentName::new_unchecked(from), "x".into(), at);
        MessageCopy {
            team: root.create_team(&config).unwrap(),
            to: AgentName::new_unchecked("ann"),
            id: message_id(&message),
            message,
            location: CopyLocation::InInbox { index: 0 },
        }
    }
}
