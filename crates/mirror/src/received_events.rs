//! At the home: the events of the annex that are not in the home's event log yet. A file has them,
//! because the annex does not send them again.

use protocol::event_log_line::Event;
use protocol::team_and_member_names::TeamName;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use store::{AppendOnlyFile, Durability, Error, StateDir};

/// The file is replaced when it has no events to log and at least this many lines.
const LINES_TO_REPLACE: usize = 100;

/// The received events of one team.
#[derive(Debug)]
pub(crate) struct ReceivedEvents {
    file: AppendOnlyFile,
    /// How many lines the file has.
    lines: usize,
    /// The number of the last event. 0: none.
    last: u64,
    /// The events that are not logged yet, lowest number first.
    unlogged: VecDeque<Event>,
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceivedEventsLine {
    Received(Box<Event>),
    /// The events up to this number are in the event log.
    Logged(u64),
}

impl ReceivedEvents {
    /// Reads the events of a team. Lines that can't be read are skipped.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn open(state: &StateDir, team: &TeamName) -> Result<ReceivedEvents, Error> {
        let dir = StateDir::open(state.path())?;
        let (file, text) = AppendOnlyFile::open(dir, &received_events_file(team), Durability::Process)?;
        let mut events = ReceivedEvents { file, lines: 0, last: 0, unlogged: VecDeque::new() };
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(|line| serde_json::from_slice(line).ok()).for_each(|line| events.apply(line));
        Ok(events)
    }

    fn apply(&mut self, line: ReceivedEventsLine) {
        self.lines += 1;
        match line {
            ReceivedEventsLine::Received(event) => {
                self.last = self.last.max(event.number.unwrap_or_default());
                self.unlogged.push_back(*event);
            }
            ReceivedEventsLine::Logged(number) => {
                self.last = self.last.max(number);
                self.unlogged.retain(|event| event.number > Some(number));
            }
        }
    }

    /// The events that are not logged yet.
    pub(crate) fn unlogged(&self) -> Vec<Event> {
        self.unlogged.iter().cloned().collect()
    }

    /// Stores events of the annex. Returns those that are new. After a crash the annex sends events
    /// again that are stored here.
    ///
    /// # Errors
    ///
    /// `Io`. No event is stored then.
    pub(crate) fn store(&mut self, events: &[Event]) -> Result<Vec<Event>, Error> {
        let is_new = |event: &&Event| event.number > Some(self.last);
        let new: Vec<Event> = events.iter().filter(is_new).cloned().collect();
        let lines: Vec<ReceivedEventsLine> =
            new.iter().map(|event| ReceivedEventsLine::Received(Box::new(event.clone()))).collect();
        if !lines.is_empty() {
            self.file.append(&lines.iter().flat_map(encode).collect::<Vec<u8>>())?;
            lines.into_iter().for_each(|line| self.apply(line));
        }
        Ok(new)
    }

    /// Removes the events up to this number, because the home's event log has them.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn note_logged(&mut self, number: u64) -> Result<(), Error> {
        if self.unlogged.iter().all(|event| event.number > Some(number)) {
            return Ok(());
        }
        let is_last = number >= self.last;
        match is_last && self.lines >= LINES_TO_REPLACE {
            true => {
                self.file.replace(&encode(&ReceivedEventsLine::Logged(self.last)))?;
                self.lines = 0;
            }
            false => self.file.append(&encode(&ReceivedEventsLine::Logged(number)))?,
        }
        self.apply(ReceivedEventsLine::Logged(number));
        Ok(())
    }
}

fn encode(line: &ReceivedEventsLine) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).expect("an event has string keys");
    text.push(b'\n');
    text
}

/// The name of the file with the received events of a team.
pub(crate) fn received_events_file(team: &TeamName) -> String {
    format!("{team}.received-events")
}
