//! Events that an annex sends to the home of the team.

use crate::event_log_line::{Event, EventKind};
use crate::timestamp::iso8601;

impl EventKind {
    /// Whether an annex sends events of this kind to the home: most kinds of events about members
    /// and messages. The home logs the events of tasks and requests itself, because it has their
    /// files.
    pub fn is_sent_to_home(&self) -> bool {
        matches!(
            self,
            EventKind::MemberSpawned { .. }
                | EventKind::MemberSpawnFailed { .. }
                | EventKind::MemberAdopted { .. }
                | EventKind::MemberActive { .. }
                | EventKind::MemberIdle { .. }
                | EventKind::MemberUsage { .. }
                | EventKind::MemberAtDialog { .. }
                | EventKind::MemberNoOutput { .. }
                | EventKind::MemberTurnsFailed { .. }
                | EventKind::MemberLimited { .. }
                | EventKind::MemberExchangePaused { .. }
                | EventKind::MemberTurnsHeld { .. }
                | EventKind::MemberInterrupted
                | EventKind::MemberExited { .. }
                | EventKind::MemberRespawnScheduled { .. }
                | EventKind::MemberRespawnsExhausted { .. }
                | EventKind::MemberSuspended
                | EventKind::ShutdownRequested { .. }
                | EventKind::ShutdownRejected { .. }
                | EventKind::ModeSet { .. }
                | EventKind::BudgetExhausted { .. }
                | EventKind::MessageStored { .. }
                | EventKind::MessageRead { .. }
                | EventKind::MessageRestored { .. }
                | EventKind::Error { .. }
        )
    }
}

impl Event {
    /// Whether the event says that a message was stored or read in the mirror of an inbox on an
    /// annex. The home logs a second event of this kind, for the true inbox.
    pub fn is_of_mirrored_inbox(&self) -> bool {
        let is_of_inbox =
            matches!(self.kind, EventKind::MessageStored { .. } | EventKind::MessageRead { .. });
        is_of_inbox && self.on_host.is_some()
    }

    /// The event with this time, in milliseconds since the epoch, unless it has a time already.
    #[must_use]
    pub fn with_time(self, ms: u64) -> Event {
        let time = if self.time.is_empty() { iso8601(ms) } else { self.time };
        Event { time, ..self }
    }
}
