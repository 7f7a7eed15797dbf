//! At the home: passes the events of the annex to the daemon, which logs them.

use crate::mirror::{Mirror, MirrorSide};
use crate::output::MirrorNotice;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::team_and_member_names::TeamName;
use store::Error;

impl Mirror {
    /// Stores events of the annex, and asks the daemon to log those that are new.
    pub(crate) fn apply_events(&mut self, team: &TeamName, events: &[Event]) -> Result<(), Error> {
        let events = self.mirror(team)?.received_events.store(events)?;
        self.notify_of_events(team, events);
        Ok(())
    }

    /// After a crash, asks the daemon again to log events. It skips those that its log has already.
    pub(crate) fn notify_of_unlogged_events(&mut self, team: &TeamName) -> Result<(), Error> {
        let events = self.mirror(team)?.received_events.unlogged();
        self.notify_of_events(team, events);
        Ok(())
    }

    fn notify_of_events(&mut self, team: &TeamName, events: Vec<Event>) {
        if !events.is_empty() {
            self.notify(MirrorNotice::EventsReceived { team: team.clone(), events });
        }
    }

    /// At the home: forgets the events of a team up to this number, because the event log has them.
    ///
    /// # Errors
    ///
    /// If the state can't be written.
    pub fn note_events_logged(&mut self, team: &TeamName, number: u64) -> Result<(), ErrorReport> {
        if matches!(self.side, MirrorSide::Home { .. }) && self.is_mirrored(team)? {
            self.mirror(team)?.received_events.note_logged(number)?;
        }
        Ok(())
    }
}
