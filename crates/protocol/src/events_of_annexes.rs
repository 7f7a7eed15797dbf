//! Events that an annex sends to the home of the team.

use crate::event_log_line::{Event, EventKind};
use crate::timestamp::iso8601;

impl EventKind {
    /// Whether an annex sends events of this kind to the home. Most events about members and
    /// messages are sent. Events about tasks and requests are not: the home has the files of tasks
    /// and requests, so it logs these events itself.
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
    /// Whether the event says that a message was stored or read in an annex's mirror of an inbox.
    /// The home logs a second event when the message is stored or read in the inbox itself.
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
