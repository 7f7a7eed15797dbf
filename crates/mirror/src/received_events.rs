//! At the home: the events of the annex that are not in the home's event log yet. They are stored
//! in a file, so that a crash of the home does not lose them.

use crate::json_fields::json_line;
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

/// A line of the file. `E` is an event, or a reference to one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReceivedEventsLine<E> {
    Received(E),
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
        for line in lines.filter_map(|line| serde_json::from_slice(line).ok()) {
            match line {
                ReceivedEventsLine::Received(event) => events.add(event),
                ReceivedEventsLine::Logged(number) => events.remove_through(number),
            }
        }
        Ok(events)
    }

    /// Adds the event of a line.
    fn add(&mut self, event: Event) {
        self.lines += 1;
        self.last = self.last.max(event.number.unwrap_or_default());
        self.unlogged.push_back(event);
    }

    /// Removes the events that a line says are logged.
    fn remove_through(&mut self, number: u64) {
        self.lines += 1;
        self.last = self.last.max(number);
        while self.unlogged.front().is_some_and(|event| event.number <= Some(number)) {
            self.unlogged.pop_front();
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
        if !new.is_empty() {
            let lines = new.iter().flat_map(|event| json_line(&ReceivedEventsLine::Received(event)));
            self.file.append(&lines.collect::<Vec<u8>>())?;
            new.iter().for_each(|event| self.add(event.clone()));
        }
        Ok(new)
    }

    /// Removes the events up to this number, because the home's event log has them.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn note_logged(&mut self, number: u64) -> Result<(), Error> {
        if self.unlogged.front().is_none_or(|event| event.number > Some(number)) {
            return Ok(());
        }
        let logged = json_line(&ReceivedEventsLine::<Event>::Logged(number));
        if number >= self.last && self.lines >= LINES_TO_REPLACE {
            self.file.replace(&logged)?;
            self.lines = 0;
        } else {
            self.file.append(&logged)?;
        }
        self.remove_through(number);
        Ok(())
    }
}

/// The name of the file with the received events of a team.
pub(crate) fn received_events_file(team: &TeamName) -> String {
    format!("{team}.received-events")
}
