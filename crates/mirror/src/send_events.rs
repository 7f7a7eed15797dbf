//! At the annex: sends the events of its log to the home. After a crash, the daemon passes the events
//! of its log again that the link may have lost.

use crate::items_awaiting_acceptance::OnAcceptance;
use crate::mirror::{Mirror, MirrorSide};
use crate::output::MirrorOutput;
use crate::sent_events::last_number;
use protocol::annex_link::ItemPayload;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::Event;
use protocol::team_and_member_names::TeamName;
use std::collections::BTreeMap;

/// Maximum number of events in one item.
const EVENTS_OF_ITEM: usize = 50;

impl Mirror {
    /// At the annex: sends events of the log, lowest number first. Events that were sent already are
    /// left out.
    ///
    /// # Errors
    ///
    /// If the state of the team can't be read.
    pub fn send_events(&mut self, team: &TeamName, events: &[Event]) -> Result<MirrorOutput, ErrorReport> {
        if self.side == MirrorSide::Annex && self.is_mirrored(team)? {
            let mirror = self.mirror(team)?;
            let (unsent, created_at) = (mirror.sent_events.note_sent(events), mirror.created_at);
            for events in unsent.chunks(EVENTS_OF_ITEM) {
                let item = ItemPayload::Events { team: team.clone(), created_at, events: events.to_vec() };
                let number = last_number(events).unwrap_or_default();
                self.send_and_record(item, OnAcceptance::RecordEvents { team: team.clone(), number });
            }
        }
        Ok(self.take_output())
    }

    /// At the annex: for each mirrored team, the number of the last event that the link keeps. The
    /// events after it must be sent after a start.
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
