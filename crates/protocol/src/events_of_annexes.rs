//! Events that an annex sends to the home of the team.

use crate::event_log_line::{Event, EventKind};
use crate::timestamp::iso8601;

impl EventKind {
    /// Whether an annex sends such an event. The home logs all other kinds itself, because it has
    /// the tasks, the messages and the requests.
    pub fn is_sent_to_home(&self) -> bool {
        matches!(
            self,
            EventKind::MemberSpawned { .. }
                | EventKind::MemberSpawnFailed { .. }
                | EventKind::MemberAdopted { .. }
                | EventKind::MemberActive { .. }
                | EventKind::MemberIdle { .. }
                | EventKind::MemberAtDialog { .. }
                | EventKind::MemberNoOutput { .. }
                | EventKind::MemberTurnsFailed { .. }
                | EventKind::MemberLimited { .. }
                | EventKind::MemberExchangePaused { .. }
                | EventKind::MemberInterrupted
                | EventKind::MemberExited { .. }
                | EventKind::MemberRespawnScheduled { .. }
                | EventKind::MemberRespawnsExhausted { .. }
                | EventKind::MemberSuspended
                | EventKind::ShutdownRequested { .. }
                | EventKind::ShutdownRejected { .. }
                | EventKind::ModeSet { .. }
                | EventKind::BudgetExhausted { .. }
                | EventKind::MessageRestored { .. }
                | EventKind::Error { .. }
        )
    }
}

impl Event {
    /// The event with this time, in milliseconds since the epoch, unless it has a time already.
    #[must_use]
    pub fn with_time(self, ms: u64) -> Event {
        let time = if self.time.is_empty() { iso8601(ms) } else { self.time };
        Event { time, ..self }
    }
}
