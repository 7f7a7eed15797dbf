//! The connection of a link, and the attempt to make one.

use crate::disconnect_reason::DisconnectReason;
use crate::event_and_effect::ConnectionNumber;
use protocol::annex_link::LinkHello;

/// Whether a link works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkPhase {
    /// There is no connection, or the hello of the other end is still missing.
    Disconnected {
        /// Why.
        reason: DisconnectReason,
        /// How many attempts have failed since the last connection.
        failures: u32,
        /// When the home connects again, in milliseconds, on the same clock as `LinkTime::ms`.
        /// `None` during an attempt, and at the annex.
        retry_at: Option<u64>,
    },
    /// Both ends have said hello.
    Connected {
        /// The connection.
        connection: ConnectionNumber,
        /// When the last frame arrived, in milliseconds.
        received_at: u64,
        /// When the last frame was sent, in milliseconds.
        sent_at: u64,
    },
}

/// A new connection, until this end has accepted the hello of the other end. Until then, an annex
/// can still use its earlier connection.
#[derive(Debug)]
pub(crate) struct ConnectionAttempt {
    pub(crate) connection: ConnectionNumber,
    /// When the attempt is given up, in milliseconds.
    pub(crate) deadline: u64,
    pub(crate) stage: AttemptStage,
}

#[derive(Debug)]
pub(crate) enum AttemptStage {
    /// The connect command was not started yet.
    Opening,
    /// The hello of the other end has not arrived.
    AwaitingHello,
    /// The home has a higher epoch, which the application stores now.
    StoringEpoch(LinkHello),
}
