//! At the annex: sends the events of the event log to the home. A crash may lose events that were
//! not in the link's spool yet. The daemon reads those events from its log and sends them again.

use crate::items_awaiting_acceptance::OnAcceptance;
use crate::mirror::{Mirror, MirrorSide};
use crate::output::MirrorOutput;
use crate::sent_events::last_number;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;
use store::Error;

/// Maximum number of events in one item.
const EVENTS_OF_ITEM: usize = 50;

/// Maximum number of items with events that wait in memory for the link. The link takes no more
/// items while too many are not acknowledged, as in a long outage. Further events then stay in the
/// event log.
const WAITING_EVENT_ITEMS: usize = 500;

impl Mirror {
    /// At the annex: sends events of the log, lowest number first. Events that were sent already
    /// are left out. If too many events wait for the link, further ones are left in the log too
    /// ([`Mirror::events_left_in_log`]).
    ///
    /// # Errors
    ///
    /// If the state of the team can't be read.
    pub fn send_events(&mut self, team: &TeamName, events: &[Event]) -> Result<MirrorOutput, ErrorReport> {
        // Earlier events must be sent first.
        if !self.left_in_log.contains(team) {
            self.send_logged_events(team, events)?;
        }
        Ok(self.take_output())
    }

    /// At the annex: sends events that were left in the log, as [`Mirror::send_events`] does.
    ///
    /// # Errors
    ///
    /// If the state of the team can't be read.
    pub fn send_left_events(
        &mut self,
        team: &TeamName,
        events: &[Event],
    ) -> Result<MirrorOutput, ErrorReport> {
        self.left_in_log.remove(team);
        if let Err(error) = self.send_logged_events(team, events) {
            // Later events must not be sent before these.
            self.left_in_log.insert(team.clone());
            return Err(error.into());
        }
        Ok(self.take_output())
    }

    /// At the annex: the teams with events that were left in the log and can be sent now, each with
    /// the number of the last event that was sent.
    pub fn events_left_in_log(&self) -> BTreeMap<TeamName, u64> {
        if self.awaiting.event_items() > WAITING_EVENT_ITEMS / 2 {
            return BTreeMap::new();
        }
        let last = |team: &TeamName| self.mirrors.get(team).map(|mirror| mirror.sent_events.last());
        self.left_in_log.iter().map(|team| (team.clone(), last(team).unwrap_or_default())).collect()
    }

    fn send_logged_events(&mut self, team: &TeamName, events: &[Event]) -> Result<(), Error> {
        if self.side != MirrorSide::Annex || !self.is_mirrored(team)? {
            return Ok(());
        }
        let mirror = self.mirror(team)?;
        let (unsent, created_at) = (mirror.sent_events.unsent(events), mirror.created_at);
        for events in unsent.chunks(EVENTS_OF_ITEM) {
            if self.awaiting.event_items() >= WAITING_EVENT_ITEMS {
                self.left_in_log.insert(team.clone());
                break;
            }
            if let Some(last) = events.last() {
                self.mirror(team)?.sent_events.note_sent(last);
            }
            let events: Vec<Event> = events.iter().map(|event| (*event).clone()).collect();
            let number = last_number(&events).unwrap_or_default();
            let item = ItemPayload::Events { team: team.clone(), created_at, events };
            self.send_and_record(item, OnAcceptance::RecordEvents { team: team.clone(), number });
        }
        Ok(())
    }

    /// At the annex: for each mirrored team, the number of the last event that has reached the
    /// link's spool. When the daemon starts, it must send the events with higher numbers.
    ///
    /// # Errors
    ///
    /// If the state of a team can't be read.
    pub fn kept_events(&mut self) -> Result<BTreeMap<TeamName, u64>, ErrorReport> {
        let mut kept = BTreeMap::new();
        for team in self.teams() {
            if self.side == MirrorSide::Annex && self.is_mirrored(&team)? {
                let number = self.mirror(&team)?.sent_events.kept();
                kept.insert(team, number);
            }
        }
        Ok(kept)
    }
}
