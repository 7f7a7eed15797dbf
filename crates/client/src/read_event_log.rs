//! Reads the daemon's event log.

use protocol::event_log_line::Event;
use protocol::state_file_names::{EVENT_LOG, OLDER_EVENT_LOG};
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::timestamp::parse_iso8601;
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
        EventLog([OLDER_EVENT_LOG, EVENT_LOG].map(text).to_vec())
    }

    /// Returns all events, oldest first.
    pub fn events(&self) -> Vec<Event> {
        let lines = self.0.iter().flat_map(|text| text.lines());
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Returns the events of all teams that have had the name `team`, oldest first.
    pub fn events_of_team(&self, team: &TeamName) -> Vec<Event> {
        let pattern = format!("\"team\":\"{team}\"");
        let lines = self.0.iter().flat_map(|text| text.lines()).filter(|line| line.contains(&pattern));
        let events = lines.filter_map(|line| serde_json::from_str::<Event>(line).ok());
        events.filter(|event| event.team.as_ref() == Some(team)).collect()
    }

    /// Returns the events whose lines contain the member's name or at least one of `words`, oldest
    /// first. Other lines are not parsed, because the log is large and most lines are about other
    /// members.
    pub fn events_of(&self, name: &MemberName, words: &[&str]) -> Vec<Event> {
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
