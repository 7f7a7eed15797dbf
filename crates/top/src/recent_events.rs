//! The last events of the team, from the daemon's event log.

use crate::clock_time::ScreenClock;
use crate::team_snapshot_for_screen::EventItem;
use client::format_event_line::event_text_in_team;
use client::growing_file_reader::GrowingFileReader;
use client::read_event_log::event_time;
use protocol::event_log_line::Event;
use protocol::state_file_names::EVENT_LOG;
use protocol::team_and_member_names::TeamName;
use std::collections::VecDeque;
use std::path::Path;

/// How many events are kept.
pub(crate) const MAX_EVENTS: usize = 100;

/// The last events of a team and of the daemon, and how far the event log was read.
#[derive(Debug)]
pub(crate) struct EventStream {
    log: GrowingFileReader,
    team: TeamName,
    /// The start of a line whose end is not written yet.
    partial_line: Vec<u8>,
    lines: VecDeque<String>,
    events: VecDeque<Event>,
}

impl EventStream {
    pub(crate) fn new(state_dir: &Path, team: &TeamName) -> EventStream {
        EventStream {
            log: GrowingFileReader::new(state_dir.join(EVENT_LOG)),
            team: team.clone(),
            partial_line: Vec::new(),
            lines: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Reads the new lines of the log, and returns the last events, oldest first. A log that cannot
    /// be read has no new lines.
    pub(crate) fn events(&mut self, clock: &ScreenClock) -> Vec<EventItem> {
        while let Ok(Some(chunk)) = self.log.next_chunk() {
            self.add(&chunk);
        }
        // Only the lines that are kept are parsed, because the log can be long.
        self.events.extend(self.lines.drain(..).filter_map(|line| serde_json::from_str(&line).ok()));
        let surplus = self.events.len().saturating_sub(MAX_EVENTS);
        self.events.drain(..surplus);
        self.events.iter().map(|event| event_item(event, clock)).collect()
    }

    /// Keeps the last lines of the team and of the daemon.
    fn add(&mut self, chunk: &[u8]) {
        self.partial_line.extend(chunk);
        let Some(end) = self.partial_line.iter().rposition(|byte| *byte == b'\n') else { return };
        let rest = self.partial_line.split_off(end + 1);
        let complete = std::mem::replace(&mut self.partial_line, rest);
        let team = format!("\"team\":\"{}\"", self.team);
        let is_kept = |line: &&str| line.contains(&team) || !line.contains("\"team\":");
        for line in String::from_utf8_lossy(&complete).lines().filter(is_kept) {
            self.lines.push_back(line.to_owned());
            if self.lines.len() > MAX_EVENTS {
                self.lines.pop_front();
            }
        }
    }
}

/// The list item of an event.
pub(crate) fn event_item(event: &Event, clock: &ScreenClock) -> EventItem {
    let text = event_text_in_team(event);
    EventItem { time_text: clock.text(event_time(event)), text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::TimeZone;
    use std::io::Write;

    #[test]
    fn new_lines_of_the_team_and_the_daemon_are_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = std::fs::File::create(dir.path().join(EVENT_LOG)).unwrap();
        let mut write = |text: &str| log.write_all(text.as_bytes()).unwrap();
        let event = |team: &str, rest: &str| {
            format!(r#"{{"time":"1970-01-01T00:00:01.000Z"{team},"event":{rest}}}"#) + "\n"
        };
        let (survey, other) = (r#","team":"survey""#, r#","team":"other""#);
        let mut stream = EventStream::new(dir.path(), &TeamName::parse("survey").unwrap());
        write(&event("", r#""daemon_stopped","reason":"x""#));
        write(&event(other, r#""team_created""#));
        write(&event(survey, r#""team_created""#));
        write("no event\n");
        let line = event(survey, r#""member_suspended","member":"ann""#);
        write(&line[..40]);
        let texts = |stream: &mut EventStream| {
            stream
                .events(&ScreenClock::at(1_000, TimeZone::UTC))
                .into_iter()
                .map(|event| event.text)
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(&mut stream), ["teamd stops: x", "survey created"]);
        write(&line[40..]);
        assert_eq!(texts(&mut stream)[2..], ["ann is suspended"]);
        (0..2 * MAX_EVENTS).for_each(|_| write(&line));
        assert_eq!(texts(&mut stream), vec!["ann is suspended"; MAX_EVENTS]);
    }
}
