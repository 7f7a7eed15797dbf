//! Reads the daemon's event log and formats events for people.

use protocol::escape_control_chars::visible;
use protocol::event::Event;
use protocol::name::AgentName;
use protocol::timestamp::parse_iso8601;
use serde_json::Value;
use std::path::Path;

/// Lines of the event log. If the daemon rotates the log while it is read, some lines can be
/// missing or duplicated.
#[derive(Debug)]
pub struct EventLog(Vec<String>);

impl EventLog {
    /// Reads the current and the previous file of the event log.
    pub fn read(state: &Path) -> EventLog {
        let text = |file: &str| {
            let bytes = std::fs::read(state.join(file)).unwrap_or_default();
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        };
        EventLog(["events.jsonl.1", "events.jsonl"].map(text).to_vec())
    }

    /// Returns all events, oldest first.
    pub fn events(&self) -> Vec<Event> {
        let lines = self.0.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the events whose lines contain the member's name or one of `words`, oldest first.
    /// Only lines that contain one of these words are parsed, because the log is large and most
    /// lines are about other members.
    pub fn events_of(&self, name: &AgentName, words: &[&str]) -> Vec<Event> {
        // Names that differ only in case mean the same member.
        let name = serde_json::to_string(name.as_str()).unwrap_or_default().to_ascii_lowercase();
        let is_match = |line: &str| {
            line.to_ascii_lowercase().contains(&name) || words.iter().any(|word| line.contains(word))
        };
        let lines = self.0.iter().flat_map(|text| text.lines()).filter(|line| is_match(line));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Time of the event in milliseconds since the epoch. 0 if the time is invalid.
pub fn event_time(event: &Event) -> u64 {
    parse_iso8601(&event.time).unwrap_or(0)
}

/// Formats an event as one line for people. `line` is the event's line in the log, and `event` its
/// parsed JSON. If this release does not know the kind of the event, all fields are shown.
pub fn event_line(line: &str, event: &Value) -> String {
    let known_event: Option<Event> = serde_json::from_str(line).ok();
    let text = match known_event {
        Some(known_event) => format!("{} {}", known_event.time, known_event.to_text()),
        None => event_fields(event),
    };
    visible(&text.replace('\n', " "))
}

fn event_fields(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().map(str::to_owned);
    let subject = match (event["member"].as_str(), event["team"].as_str()) {
        (Some(agent), Some(team)) => Some(format!("{agent}@{team}")),
        (agent, team) => agent.or(team).map(str::to_owned),
    };
    let leading_fields = ["time", "team", "member", "event", "text"];
    let other_fields =
        event.as_object().into_iter().flatten().filter(|(key, _)| !leading_fields.contains(&key.as_str()));
    let other_fields = other_fields.map(|(key, value)| match value.as_str() {
        Some(text) => Some(format!("{key}={text}")),
        None => Some(format!("{key}={value}")),
    });
    let words =
        [field("time"), subject, field("event"), field("text")].into_iter().chain(other_fields).flatten();
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
