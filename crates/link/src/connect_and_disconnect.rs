//! How connections are made, and how they end.

use crate::disconnect_reason::DisconnectReason;
use crate::event_and_effect::{ConnectionNumber, LinkEffect, LinkReport};
use crate::link_phase::{AttemptStage, ConnectionAttempt, LinkPhase};
use crate::link_state::LinkContext;
use crate::settings_and_identity::LinkRole;
use protocol::annex_link::LinkFrame;

impl LinkContext<'_> {
    pub(crate) fn is_home(&self) -> bool {
        matches!(self.link.identity.role, LinkRole::Home { .. })
    }

    /// Sends a frame on a connection.
    pub(crate) fn send(&mut self, connection: ConnectionNumber, frame: LinkFrame) {
        if let LinkPhase::Connected { sent_at, .. } = &mut self.link.phase {
            *sent_at = self.now.ms;
        }
        self.effects.push(LinkEffect::Send { connection, frame });
    }

    /// The number of the connection that works.
    pub(crate) fn connection(&self) -> Option<ConnectionNumber> {
        match self.link.phase {
            LinkPhase::Connected { connection, .. } => Some(connection),
            LinkPhase::Disconnected { .. } => None,
        }
    }

    pub(crate) fn is_attempt(&self, connection: ConnectionNumber) -> bool {
        self.link.attempt.as_ref().is_some_and(|attempt| attempt.connection == connection)
    }

    /// Gives up what has lasted too long, connects if the pause is over, and sends a keep-alive.
    pub(crate) fn handle_deadline(&mut self) {
        let now = self.now.ms;
        if self.link.attempt.as_ref().is_some_and(|attempt| attempt.deadline <= now) {
            self.end_attempt(DisconnectReason::NoHello);
        }
        let settings = self.link.settings;
        match self.link.phase {
            LinkPhase::Connected { received_at, .. } if received_at + settings.silence_ms <= now => {
                self.disconnect(DisconnectReason::Silent);
            }
            LinkPhase::Connected { connection, sent_at, .. } if sent_at + settings.keep_alive_ms <= now => {
                self.send(connection, LinkFrame::KeepAlive);
            }
            LinkPhase::Disconnected { retry_at: Some(at), .. } if at <= now => self.connect(),
            LinkPhase::Connected { .. } | LinkPhase::Disconnected { .. } => {}
        }
    }

    /// Starts an attempt of the home.
    fn connect(&mut self) {
        if let LinkPhase::Disconnected { retry_at, .. } = &mut self.link.phase {
            *retry_at = None;
        }
        self.link.last_connection += 1;
        let connection = self.link.last_connection;
        self.start_attempt(connection, AttemptStage::Opening);
        self.effects.push(LinkEffect::Connect { connection });
    }

    fn start_attempt(&mut self, connection: ConnectionNumber, stage: AttemptStage) {
        let deadline = self.now.ms + self.link.settings.hello_ms;
        self.link.attempt = Some(ConnectionAttempt { connection, deadline, stage });
    }

    /// Called when the byte stream of a new connection is open. The home sends its hello, the first
    /// frame of a connection. Then each end waits for the hello of the other end. If an annex still
    /// waits for the hello of an earlier connection, it gives up that connection.
    pub(crate) fn handle_opened(&mut self, connection: ConnectionNumber) {
        if !self.is_home() {
            if let Some(earlier) = self.link.attempt.take() {
                self.effects.push(LinkEffect::Close { connection: earlier.connection });
            }
            self.start_attempt(connection, AttemptStage::AwaitingHello);
        } else if let Some(attempt) = self.link.attempt.as_mut().filter(|last| last.connection == connection)
        {
            attempt.stage = AttemptStage::AwaitingHello;
            let hello = self.own_hello();
            self.send(connection, LinkFrame::Hello(hello));
        }
    }

    pub(crate) fn handle_closed(&mut self, connection: ConnectionNumber, reason: String) {
        if self.connection() == Some(connection) {
            self.disconnect(DisconnectReason::Ended(reason));
        } else if self.is_attempt(connection) {
            self.end_attempt(DisconnectReason::Ended(reason));
        }
    }

    /// Ends the attempt. A connection that works goes on.
    pub(crate) fn end_attempt(&mut self, reason: DisconnectReason) {
        let Some(attempt) = self.link.attempt.take() else { return };
        self.effects.push(LinkEffect::Close { connection: attempt.connection });
        let LinkPhase::Disconnected { failures, .. } = self.link.phase else { return };
        self.set_disconnected(reason, failures.saturating_add(1));
    }

    /// Ends the connection that works.
    pub(crate) fn disconnect(&mut self, reason: DisconnectReason) {
        let Some(connection) = self.connection() else { return };
        self.effects.push(LinkEffect::Close { connection });
        self.set_disconnected(reason, 0);
    }

    fn set_disconnected(&mut self, reason: DisconnectReason, failures: u32) {
        let retry_at = self.is_home().then(|| self.now.ms + self.pause(&reason, failures));
        self.effects.push(LinkEffect::Report(LinkReport::Disconnected(reason.clone())));
        self.link.phase = LinkPhase::Disconnected { reason, failures, retry_at };
        self.link.storage_error_there = None;
    }

    /// Between half and all of the pause after so many failures, in milliseconds.
    fn pause(&self, reason: &DisconnectReason, failures: u32) -> u64 {
        let settings = &self.link.settings;
        let doubled = settings.first_pause_ms.saturating_mul(1 << failures.min(32));
        let full = match reason {
            DisconnectReason::Refused(_) | DisconnectReason::RefusedByOther(_) => settings.longest_pause_ms,
            _ => doubled.min(settings.longest_pause_ms),
        };
        full / 2 + self.now.random % (full / 2 + 1)
    }
}
