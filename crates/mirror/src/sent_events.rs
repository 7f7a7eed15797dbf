//! At the annex: how far the events of a team were sent to the home. A file has the number of the
//! last event that has reached the link's spool.

use protocol::event_log_line::Event;
use protocol::team_and_member_names::TeamName;
use store::{Error, StateDir};

/// How far the events of one team were sent.
#[derive(Debug)]
pub(crate) struct SentEvents {
    /// The number of the last event that was sent. 0: none.
    last: u64,
    /// The number of the last event that the link keeps. 0: none.
    kept: u64,
}

impl SentEvents {
    /// Reads the record of a team. A damaged file counts as empty. All events are then sent again,
    /// and the home ignores the events that it has already.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn open(state: &StateDir, team: &TeamName) -> Result<SentEvents, Error> {
        let bytes = state.read(&sent_events_file(team))?;
        let kept = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or(0);
        Ok(SentEvents { last: kept, kept })
    }

    /// The number of the last event that the link keeps. 0: none.
    pub(crate) fn kept(&self) -> u64 {
        self.kept
    }

    /// The number of the last event that was sent. 0: none.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The events that were not sent yet.
    pub(crate) fn unsent<'e>(&self, events: &'e [Event]) -> Vec<&'e Event> {
        events.iter().filter(|event| event.number > Some(self.last)).collect()
    }

    /// Notes that an event is sent now.
    pub(crate) fn note_sent(&mut self, event: &Event) {
        self.last = event.number.unwrap_or(self.last);
    }

    /// Records that the events up to `number` have reached the link's spool.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(crate) fn note_kept(&mut self, state: &StateDir, team: &TeamName, number: u64) -> Result<(), Error> {
        if number > self.kept {
            state.replace(&sent_events_file(team), number.to_string().as_bytes())?;
            self.kept = number;
            self.last = self.last.max(number);
        }
        Ok(())
    }
}

/// The number of the last event.
pub(crate) fn last_number(events: &[Event]) -> Option<u64> {
    events.last().and_then(|event| event.number)
}

/// The name of the file with the number of the last kept event of a team.
pub(crate) fn sent_events_file(team: &TeamName) -> String {
    format!("{team}.sent-events")
}
