//! The state of one end of a link.

use crate::disconnect_reason::DisconnectReason;
use crate::event_and_effect::{ConnectionNumber, LinkEffect, LinkTime, ReceivedPosition};
use crate::incoming_items::IncomingItems;
use crate::link_phase::{ConnectionAttempt, LinkPhase};
use crate::outgoing_items::OutgoingItems;
use crate::settings_and_identity::{LinkIdentity, LinkRole, LinkSettings};
use crate::spool_lines::SpoolContents;

/// One end of a link, without I/O and clock. `handle` takes an event and returns effects.
///
/// A home connects at its first [`deadline`](LinkState::deadline), which is due at once.
#[derive(Debug)]
pub struct LinkState {
    pub(crate) identity: LinkIdentity,
    pub(crate) settings: LinkSettings,
    pub(crate) phase: LinkPhase,
    pub(crate) attempt: Option<ConnectionAttempt>,
    pub(crate) outgoing: OutgoingItems,
    pub(crate) incoming: IncomingItems,
    /// The last connection that the home has made.
    pub(crate) last_connection: ConnectionNumber,
    /// Why the other end cannot write its files, as it has said on this connection.
    pub(crate) storage_error_there: Option<String>,
}

impl LinkState {
    /// The state after a start. `spool` has the items that were not acknowledged, and `received` is
    /// what the application has stored.
    pub fn new(
        identity: LinkIdentity,
        settings: LinkSettings,
        spool: SpoolContents,
        received: ReceivedPosition,
    ) -> LinkState {
        let (epoch, retry_at) = match identity.role {
            LinkRole::Home { epoch } => (epoch, Some(0)),
            LinkRole::Annex => (0, None),
        };
        LinkState {
            identity,
            settings,
            phase: LinkPhase::Disconnected {
                reason: DisconnectReason::NeverConnected,
                failures: 0,
                retry_at,
            },
            attempt: None,
            outgoing: OutgoingItems::new(spool),
            incoming: IncomingItems::new(received, epoch),
            last_connection: 0,
            storage_error_there: None,
        }
    }

    /// Whether the link works.
    pub fn phase(&self) -> &LinkPhase {
        &self.phase
    }

    /// Whether the application may submit. If not, it keeps its items until some are acknowledged.
    pub fn has_capacity(&self) -> bool {
        self.outgoing.len() < self.settings.queue_items && self.outgoing.bytes() < self.settings.queue_bytes
    }

    /// Sequence number of the last submitted item. The next submission gets the next number.
    pub fn last_number(&self) -> u64 {
        self.outgoing.last()
    }

    /// How many received items wait until the application has stored them.
    pub fn unstored_items(&self) -> usize {
        self.incoming.len()
    }

    /// When [`LinkEvent::Deadline`](crate::LinkEvent::Deadline) is due, in milliseconds.
    pub fn deadline(&self) -> Option<u64> {
        let attempt = self.attempt.as_ref().map(|attempt| attempt.deadline);
        let writes = [self.outgoing.writes.retry_at(), self.incoming.writes.retry_at()];
        let phase = match &self.phase {
            LinkPhase::Disconnected { retry_at, .. } => *retry_at,
            LinkPhase::Connected { received_at, sent_at, .. } => {
                let silence = received_at + self.settings.silence_ms;
                Some(silence.min(sent_at + self.settings.keep_alive_ms))
            }
        };
        [attempt, phase].into_iter().chain(writes).flatten().min()
    }
}

/// The state and the effects during one event.
pub(crate) struct LinkContext<'l> {
    pub(crate) link: &'l mut LinkState,
    pub(crate) now: LinkTime,
    pub(crate) effects: Vec<LinkEffect>,
}
