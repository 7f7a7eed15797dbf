//! The daemon's event log: the lines of a team or member, and each event as a line for people.

use protocol::event::Event;
use protocol::name::AgentName;
use protocol::terminal::visible;
use protocol::timestamp::parse_iso8601;
use serde_json::Value;
use std::path::Path;

/// The event log, as it was read once; of one that is rotated meanwhile some twice or not at all.
#[derive(Debug)]
pub struct EventLog(Vec<String>);

impl EventLog {
    /// Both files.
    pub fn read(state: &Path) -> EventLog {
        let text = |file: &str| {
            let bytes = std::fs::read(state.join(file)).unwrap_or_default();
            String::from_utf8(bytes)
                .unwrap_or_else(|odd| String::from_utf8_lossy(odd.as_bytes()).into_owned())
        };
        EventLog(["events.jsonl.1", "events.jsonl"].map(text).to_vec())
    }

    /// What it tells of that member and in words like these, oldest first. It is large, and most of it is of others: only
    /// lines that hold one of the words are parsed.
    pub fn events_of(&self, name: &AgentName, words: &[&str]) -> Vec<Event> {
        let name = serde_json::to_string(name.as_str()).unwrap_or_default();
        let is_meant = |line: &&str| line.contains(&name) || words.iter().any(|word| line.contains(word));
        let lines = self.0.iter().flat_map(|text| text.lines()).filter(is_meant);
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// When it was, ms since the epoch; 0 where that can't be read.
pub fn event_time(event: &Event) -> u64 {
    parse_iso8601(&event.time).unwrap_or(0)
}

/// A kind of ours has a sentence; of any other, an older or a later one, all fields are told.
pub fn event_line(line: &str, event: &Value) -> String {
    let known: Option<Event> = serde_json::from_str(line).ok();
    let text = match known {
        Some(known) => format!("{} {}", known.time, known.to_text()),
        None => event_fields(event),
    };
    visible(&text.replace('\n', " "))
}

fn event_fields(event: &Value) -> String {
    let field = |name: &str| event[name].as_str().map(str::to_owned);
    let who = match (event["agent"].as_str(), event["team"].as_str()) {
        (Some(agent), Some(team)) => Some(format!("{agent}@{team}")),
        (agent, team) => agent.or(team).map(str::to_owned),
    };
    let told = ["time", "team", "agent", "event", "text"];
    let rest = event.as_object().into_iter().flatten().filter(|(key, _)| !told.contains(&key.as_str()));
    let rest = rest.map(|(key, value)| match value.as_str() {
        Some(text) => Some(format!("{key}={text}")),
        None => Some(format!("{key}={value}")),
    });
    let words = [field("time"), who, field("event"), field("text")].into_iter().chain(rest).flatten();
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}
