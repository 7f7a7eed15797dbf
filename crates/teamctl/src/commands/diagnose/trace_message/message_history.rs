//! Finds out what happened to a message, from the team files and the event log. Events have no
//! message ids, so the order of the events must show which of them belong to the message.

use super::message_copy::{CopyLocation, MessageCopy};
use client::read_event_log::{EventLog, event_time};
use protocol::event_log_line::{Event, EventKind};
use protocol::inbox_file::Message;
use protocol::inbox_message_payload::Payload;
use protocol::member_request::{MemberRequest, parse_answer};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::parse_iso8601;
use serde_json::{Value, json};
use store::message_id;

/// An event about a message is accepted even if its time is up to this many ms before the message's
/// time. The sender sets the message's time and the daemon sets the event's time, and their clocks
/// may differ.
const CLOCK_SKEW_MS: u64 = 1_000;

/// How far a message got. Times are in ms since the epoch.
#[derive(Debug, PartialEq)]
pub(super) struct MessageHistory {
    /// When the daemon noticed the message in the inbox. `None` if the event log does not have it.
    pub(super) stored: Option<u64>,
    /// When the message was stored on the recipient's host. `None` if the event log does not say
    /// so, or if the recipient is on this host.
    pub(super) arrival: Option<Arrival>,
    /// The turn with which the recipient got the message. `None` if it is not known.
    pub(super) delivered: Option<Turn>,
    pub(super) read: ReadState,
    pub(super) reply: Option<MessageReply>,
}

/// When a message was stored on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) host: String,
    /// By the clock of that host.
    pub(super) at: u64,
}

/// A turn of the recipient.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    /// What the turn is about, such as `message from bob`. May be empty.
    pub(super) subject: String,
    pub(super) started_at: u64,
}

/// Whether the recipient has read the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadState {
    /// The message is unread.
    Unread,
    /// Another program took the message out, and the event log does not show that it was read.
    Removed,
    /// When the message was read. `None` if the time is not known.
    ReadAt(Option<u64>),
}

/// The recipient's reply to the sender.
#[derive(Debug, PartialEq)]
pub(super) struct MessageReply {
    pub(super) at: u64,
    /// `text`, or the type of the payload.
    kind: String,
    summary: Option<String>,
    id: String,
}

impl MessageReply {
    /// The keys are those of `--json`.
    pub(super) fn to_json(&self) -> Value {
        json!({"at": self.at, "kind": self.kind, "summary": self.summary, "message_id": self.id})
    }

    /// Describes the reply for people.
    pub(super) fn result_text(&self, copy: &MessageCopy) -> String {
        let (to, id) = (&copy.to, &self.id[..12]);
        let summary = self.summary.as_ref().map_or_else(String::new, |summary| format!(": {summary}"));
        match self.kind.as_str() {
            "text" => format!("by {to} with {id}{summary}"),
            "idle_notification" => format!("by {to} with an idle notification, {id}"),
            kind => format!("by {to} with a {kind}, {id}"),
        }
    }

    fn from_message(message: &Message) -> Option<MessageReply> {
        Some(MessageReply {
            at: parse_iso8601(&message.timestamp)?,
            kind: Payload::parse(&message.text).map_or("text", |payload| payload.type_name()).to_owned(),
            summary: message.summary.clone(),
            id: message_id(message),
        })
    }
}

/// Returns the member's events in the order of the log. If an earlier team had the same name, that
/// team's events are left out. The times of the events need not ascend, because an event of another
/// host has the time of that host's clock.
pub(super) fn member_events(log: &EventLog, team: &TeamName, name: &MemberName) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    let candidates = log.events_of(name, &["\"team_"]).into_iter();
    for event in candidates.filter(|event| event.team.as_ref() == Some(team)) {
        match event.kind {
            EventKind::TeamCreated | EventKind::TeamDeleted => events.clear(),
            _ if event.member.as_ref() == Some(name) => events.push(event),
            _ => {}
        }
    }
    events
}

impl MessageHistory {
    /// `events` are those of the recipient.
    pub(super) fn new(copy: &MessageCopy, events: &[Event], reply: Option<MessageReply>) -> MessageHistory {
        let (on_host, here): (Vec<Event>, Vec<Event>) =
            events.iter().cloned().partition(Event::is_of_mirrored_inbox);
        let events = &here;
        let candidates = stored_events(copy, events);
        let stored_index = stored_event(copy, &candidates);
        let arrival_index = arrival_event(copy, (&candidates, stored_index), &on_host);
        let events_since_arrival = arrival_index.map_or(&[][..], |at| &on_host[at..]);
        let events_since_stored = stored_index.map_or(&[][..], |at| &events[at..]);
        // The daemon may log the turn before it scans the inbox.
        let sent_index = events.partition_point(|event| time_here(event) < copy.sent_at());
        let events_since_sent = stored_index.map_or(&[][..], |at| &events[at.min(sent_index)..]);
        let read_event = read_event(events_since_arrival).or_else(|| read_event(events_since_stored));
        let read = match (copy.message.read, copy.location, read_event.map(event_time)) {
            (false, CopyLocation::InInbox { .. }, _) => ReadState::Unread,
            (false, CopyLocation::InJournalOnly, None) => ReadState::Removed,
            (_, _, at) => ReadState::ReadAt(at),
        };
        MessageHistory {
            stored: stored_index.map(|index| event_time(&events[index])),
            arrival: arrival_index.and_then(|index| Arrival::from_event(&on_host[index])),
            delivered: delivering_turn(copy, events_since_sent, (read, read_event)),
            read,
            reply,
        }
    }
}

/// When this host logged the event, by this host's clock, in ms since the epoch.
fn time_here(event: &Event) -> u64 {
    event.logged_at.as_deref().and_then(parse_iso8601).unwrap_or_else(|| event_time(event))
}

/// Whether a turn began before a message was read. Both times are by the same clock.
fn began_before(turn: &Event, read: &Event) -> bool {
    let time = if turn.on_host == read.on_host { event_time } else { time_here };
    time(turn) <= time(read) + CLOCK_SKEW_MS
}

impl Arrival {
    fn from_event(event: &Event) -> Option<Arrival> {
        Some(Arrival { host: event.on_host.clone()?, at: event_time(event) })
    }
}

/// Finds the `message_stored` events that may be about this message: those about messages of the
/// same sender, from the time of this message on. Each result is the position of such an event in
/// `events`, and the inbox index from that event.
fn stored_events(copy: &MessageCopy, events: &[Event]) -> Vec<(usize, CopyLocation)> {
    let is_recent = |event: &Event| time_here(event) + CLOCK_SKEW_MS >= copy.sent_at();
    let from_sender = |(at, event): (usize, &Event)| match &event.kind {
        EventKind::MessageStored { index, from, .. } if *from == copy.message.from && is_recent(event) => {
            Some((at, CopyLocation::InInbox { index: *index }))
        }
        _ => None,
    };
    events.iter().enumerate().filter_map(from_sender).collect()
}

/// Returns the position of the `message_stored` event of this message. `candidates` comes from
/// `stored_events`. The candidate with the message's present index in the inbox is chosen. If there
/// is none, the message has moved in the inbox, and the first candidate is chosen.
fn stored_event(copy: &MessageCopy, candidates: &[(usize, CopyLocation)]) -> Option<usize> {
    let same_index = candidates.iter().find(|(_, location)| *location == copy.location);
    same_index.or(candidates.first()).map(|(at, _)| *at)
}

/// Finds the `message_stored` event of this message among `on_host`, the events of the recipient's
/// host. Returns the event's position in `on_host`. `candidates` and `stored_index` are the results
/// of [`stored_events`] and [`stored_event`] for the events of this host.
///
/// Both hosts store the messages of one sender in the same order. So if the message's event is the
/// third candidate on this host, it is also the third candidate on the recipient's host.
fn arrival_event(
    copy: &MessageCopy,
    (candidates, stored_index): (&[(usize, CopyLocation)], Option<usize>),
    on_host: &[Event],
) -> Option<usize> {
    let place = candidates.iter().position(|(at, _)| Some(*at) == stored_index)?;
    stored_events(copy, on_host).get(place).map(|(at, _)| *at)
}

/// Returns the event that shows that this message was read. `since_stored` has the recipient's
/// events from this message's `message_stored` event on.
///
/// Messages are read in the order of the inbox, and each `message_read` event has the number of
/// unread messages. If this number is at most the number of messages that were stored after this
/// one, this message has been read.
fn read_event(since_stored: &[Event]) -> Option<&Event> {
    let mut later_messages = 0;
    since_stored.iter().skip(1).find(|event| match event.kind {
        EventKind::MessageStored { .. } => {
            later_messages += 1;
            false
        }
        EventKind::MessageRead { unread } => unread <= later_messages,
        _ => false,
    })
}

/// Returns the turn in which the recipient got the message. `None` if the turn is not known. A read
/// message was delivered in the last turn that began before the message was read. An unread message
/// was delivered in the current turn if the turn's summary suggests it, for example because it
/// names the sender.
fn delivering_turn(
    copy: &MessageCopy,
    since_sent: &[Event],
    (read, read_event): (ReadState, Option<&Event>),
) -> Option<Turn> {
    let started_turn = |event: &Event| match &event.kind {
        EventKind::MemberActive { summary } => {
            Some(Some(Turn { subject: summary.clone(), started_at: event_time(event) }))
        }
        EventKind::MemberIdle { .. } => Some(None),
        _ => None,
    };
    match read {
        ReadState::ReadAt(_) => {
            let read = read_event?;
            let earlier = since_sent.iter().filter(|event| began_before(event, read));
            earlier.filter_map(started_turn).flatten().last()
        }
        ReadState::Removed => None,
        ReadState::Unread => {
            since_sent.iter().rev().find_map(started_turn)?.filter(|turn| is_about(copy, &turn.subject))
        }
    }
}

fn is_about(copy: &MessageCopy, subject: &str) -> bool {
    let from = format!("message from {}", copy.message.from);
    subject.starts_with(&from) || subject.ends_with("and more") || copy.message.from == "user"
}

/// Finds the recipient's first reply to a message. The caller passes the recipient's messages to
/// `add`, oldest first. The reply to a request is its answer. The reply to any other message is the
/// first later text message, or else the first later message with a JSON payload.
#[derive(Debug, Default)]
pub(super) struct FirstReply {
    /// The answer to a request, or the first later text message.
    reply: Option<MessageReply>,
    payload: Option<MessageReply>,
}

impl FirstReply {
    /// Adds a message of the recipient to the sender.
    pub(super) fn add(&mut self, copy: &MessageCopy, message: &Message) {
        if self.reply.is_some() {
            return;
        }
        if let Some(request) = MemberRequest::parse(&copy.message.text) {
            let is_answer = parse_answer(&message.text).is_some_and(|(id, _)| id == *request.id());
            self.reply = is_answer.then(|| MessageReply::from_message(message)).flatten();
            return;
        }
        let reply = MessageReply::from_message(message).filter(|reply| reply.at > copy.sent_at());
        match reply {
            Some(reply) if reply.kind == "text" => self.reply = Some(reply),
            reply => self.payload = self.payload.take().or(reply),
        }
    }

    pub(super) fn into_reply(self) -> Option<MessageReply> {
        self.reply.or(self.payload)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "these tests write an event log")]
mod tests {
    use super::*;
    use protocol::timestamp::iso8601;
    use std::path::Path;

    fn event(at: u64, kind: &Value) -> Event {
        let mut event = json!({"time": iso8601(at), "team": "t", "member": "ann"});
        event.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn stored_event(at: u64, index: usize, from: &str) -> Event {
        event(at, &json!({"event": "message_stored", "index": index, "from": from, "kind": "text"}))
    }

    fn marked_read_event(at: u64, unread: usize) -> Event {
        event(at, &json!({"event": "message_read", "unread": unread}))
    }

    fn active_event(at: u64, summary: &str) -> Event {
        event(at, &json!({"event": "member_active", "summary": summary}))
    }

    #[test]
    fn message_is_read_when_only_later_ones_are_unread() {
        let events = [
            stored_event(10, 1, "bob"),
            stored_event(20, 2, "cat"),
            marked_read_event(30, 2),
            marked_read_event(40, 1),
            marked_read_event(50, 0),
        ];
        assert_eq!(
            [&events[..], &events[1..], &events[4..]].map(|events| read_event(events).map(event_time)),
            [Some(40), Some(50), None]
        );
    }

    #[test]
    fn delivering_turn_is_the_last_before_the_message_was_read() {
        let team = tempfile::tempdir().unwrap();
        let copy = message_copy(team.path(), "bob", 10_000);
        let turns = [
            active_event(11_000, "message from cat"),
            active_event(12_000, "message from bob"),
            active_event(19_000, "x"),
        ];
        let log = [&[stored_event(10_100, 0, "bob")][..], &turns, &[marked_read_event(12_500, 0)]].concat();
        let started_at =
            |state| delivering_turn(&copy, &log, (state, log.last())).map(|turn| turn.started_at);
        assert_eq!(started_at(ReadState::ReadAt(Some(12_500))), Some(12_000));
        assert_eq!(started_at(ReadState::Unread), None, "the current turn is about another subject");
        let current_log = [stored_event(10_100, 0, "bob"), active_event(12_000, "message from bob and more")];
        assert_eq!(
            delivering_turn(&copy, &current_log, (ReadState::Unread, None)).map(|turn| turn.started_at),
            Some(12_000)
        );
    }

    #[test]
    fn stored_event_has_the_index_and_a_later_time() {
        let team = tempfile::tempdir().unwrap();
        let copy = message_copy(team.path(), "bob", 10_000);
        let log =
            [stored_event(5_000, 0, "bob"), stored_event(10_100, 1, "bob"), stored_event(10_200, 0, "bob")];
        let find = |log: &[Event]| super::stored_event(&copy, &stored_events(&copy, log));
        assert_eq!(find(&log), Some(2));
        assert_eq!(find(&log[..2]), Some(1), "another program may have removed earlier messages");
        assert_eq!(find(&log[..1]), None);
    }

    #[test]
    fn removed_message_counts_as_read_only_if_the_log_shows_it() {
        let team = tempfile::tempdir().unwrap();
        let removed =
            MessageCopy { location: CopyLocation::InJournalOnly, ..message_copy(team.path(), "bob", 10_000) };
        let log = [stored_event(10_100, 0, "bob"), marked_read_event(12_500, 0)];
        assert_eq!(MessageHistory::new(&removed, &log, None).read, ReadState::ReadAt(Some(12_500)));
        assert_eq!(MessageHistory::new(&removed, &log[..1], None).read, ReadState::Removed);
    }

    #[test]
    fn message_on_another_host_is_stored_twice_and_read_there() {
        let team = tempfile::tempdir().unwrap();
        let copy = MessageCopy {
            location: CopyLocation::InInbox { index: 3 },
            ..message_copy(team.path(), "bob", 10_000)
        };
        let copy = MessageCopy { message: Message { read: true, ..copy.message.clone() }, ..copy };
        let on_devbox = |event: Event| Event { on_host: Some("devbox".to_owned()), ..event };
        let log = [
            stored_event(9_900, 2, "bob"),
            stored_event(10_100, 3, "bob"),
            on_devbox(stored_event(10_200, 0, "bob")),
            on_devbox(stored_event(10_300, 1, "bob")),
            on_devbox(active_event(10_400, "message from bob")),
            on_devbox(marked_read_event(10_500, 0)),
            marked_read_event(10_900, 0),
        ];
        let history = MessageHistory::new(&copy, &log, None);
        let arrival = Arrival { host: "devbox".to_owned(), at: 10_300 };
        assert_eq!((history.stored, history.arrival), (Some(10_100), Some(arrival)));
        assert_eq!(history.delivered.map(|turn| turn.started_at), Some(10_400));
        assert_eq!(history.read, ReadState::ReadAt(Some(10_500)));
        let history = MessageHistory::new(&copy, &log[..2], None);
        assert_eq!((history.arrival, history.read), (None, ReadState::ReadAt(None)));
    }

    /// The clock of devbox is an hour slow, or an hour fast.
    #[test]
    fn clock_of_another_host_does_not_matter() {
        const HOUR: u64 = 3_600_000;
        let team = tempfile::tempdir().unwrap();
        let sent_at = 10 * HOUR;
        let copy = message_copy(team.path(), "bob", sent_at);
        let copy = MessageCopy { message: Message { read: true, ..copy.message.clone() }, ..copy };
        for there in [sent_at - HOUR, sent_at + HOUR] {
            let on_devbox = |event: Event, after: u64| Event {
                time: iso8601(there + after),
                on_host: Some("devbox".to_owned()),
                logged_at: Some(iso8601(sent_at + after)),
                ..event
            };
            let earlier = sent_at - 2 * HOUR;
            let mut log = vec![
                stored_event(earlier, 0, "bob"),
                Event { logged_at: Some(iso8601(earlier)), ..on_devbox(stored_event(0, 0, "bob"), 0) },
                Event { logged_at: Some(iso8601(earlier)), ..on_devbox(active_event(0, "old"), 0) },
                stored_event(sent_at + 100, 0, "bob"),
                on_devbox(stored_event(0, 0, "bob"), 200),
                on_devbox(active_event(0, "message from bob"), 300),
                on_devbox(marked_read_event(0, 0), 400),
                marked_read_event(sent_at + 500, 0),
                on_devbox(active_event(0, "next"), 5_000),
            ];
            let history = MessageHistory::new(&copy, &log, None);
            assert_eq!(history.stored, Some(sent_at + 100));
            assert_eq!(history.arrival.map(|arrival| arrival.at), Some(there + 200));
            assert_eq!(history.delivered.map(|turn| turn.started_at), Some(there + 300));
            assert_eq!(history.read, ReadState::ReadAt(Some(there + 400)));
            log.remove(6);
            let history = MessageHistory::new(&copy, &log, None);
            assert_eq!(history.read, ReadState::ReadAt(Some(sent_at + 500)), "only the home has logged it");
            assert_eq!(history.delivered.map(|turn| turn.started_at), Some(there + 300));
        }
    }

    #[test]
    fn events_stay_in_the_order_of_the_log() {
        let state = tempfile::tempdir().unwrap();
        let on_devbox = Event { on_host: Some("devbox".to_owned()), ..marked_read_event(5, 0) };
        let lines = [active_event(10, "a"), on_devbox, active_event(20, "b")]
            .map(|event| serde_json::to_string(&event).unwrap());
        std::fs::write(state.path().join(protocol::state_file_names::EVENT_LOG), lines.join("\n")).unwrap();
        let team = TeamName::parse("t").unwrap();
        let events = member_events(&EventLog::read(state.path()), &team, &MemberName::new_unchecked("ann"));
        assert_eq!(events.iter().map(event_time).collect::<Vec<_>>(), [10, 5, 20]);
    }

    fn message_copy(root: &Path, from: &str, at: u64) -> MessageCopy {
        let root = store::Root::open(&root.join("r"), root, store::Durability::Process).unwrap();
        let config = protocol::team_config::TeamConfig::parse(r#"{"name":"t","members":[]}"#).unwrap();
        let message = protocol::inbox_file::Message::new(&MemberName::new_unchecked(from), "x".into(), at);
        let team = root.create_team(&config).unwrap();
        let location = CopyLocation::InInbox { index: 0 };
        MessageCopy::new(&team, MemberName::new_unchecked("ann"), message, location)
    }
}
