//! Why a link has no connection.

use protocol::annex_link::LinkRefusal;
use std::fmt;

/// Why a link has no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DisconnectReason {
    /// There was none since the process has started.
    NeverConnected,
    /// The connection has ended, could not be made, or the other end broke the protocol.
    Ended(String),
    /// The other end has sent nothing for too long.
    Silent,
    /// The other end has not said hello in time.
    NoHello,
    /// The other end refuses this end.
    RefusedByOther(LinkRefusal),
    /// This end refuses the other one.
    Refused(LinkRefusal),
}

impl fmt::Display for DisconnectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DisconnectReason::NeverConnected => f.write_str("not connected yet"),
            DisconnectReason::Ended(reason) => f.write_str(reason),
            DisconnectReason::Silent => f.write_str("the other host does not answer"),
            DisconnectReason::NoHello => f.write_str("the other host did not answer in time"),
            DisconnectReason::RefusedByOther(refusal) => write!(f, "the other host refuses: {refusal}"),
            DisconnectReason::Refused(refusal) => write!(f, "the other host is refused: {refusal}"),
        }
    }
}
