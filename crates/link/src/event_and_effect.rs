//! What happens to a link, and what the link wants done.

use crate::disconnect_reason::DisconnectReason;
use crate::spool_lines::SpoolWrite;
use crate::submission::Submission;
use protocol::annex_link::{LinkFrame, LinkItem, LinkRefusal, MemberGeneration};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Distinguishes the connections of one process. Each new connection has a higher number.
pub type ConnectionNumber = u64;

/// When an event happens.
#[derive(Debug, Clone, Copy)]
pub struct LinkTime {
    /// Milliseconds of a monotonic clock.
    pub ms: u64,
    /// A random number, which varies the pauses between connections.
    pub random: u64,
}

/// The last item that an end has received and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReceivedPosition {
    /// The highest epoch of a home that this end has accepted. At the home its own epoch.
    pub epoch: u64,
    /// Sequence number of the item. 0: none.
    pub number: u64,
}

/// Something that happened to a link.
#[derive(Debug)]
pub enum LinkEvent {
    /// The time of [`LinkState::deadline`](crate::LinkState::deadline) has come.
    Deadline,
    /// At the home: the connect command runs. At the annex: a home has connected.
    Opened { connection: ConnectionNumber },
    /// A frame has arrived.
    Received {
        connection: ConnectionNumber,
        frame: LinkFrame,
        /// Length of the frame's text in bytes.
        bytes: usize,
    },
    /// The connection has ended or was never made.
    Closed {
        connection: ConnectionNumber,
        /// Why, as a text for people.
        reason: String,
    },
    /// The application sends an item. Only while
    /// [`LinkState::has_capacity`](crate::LinkState::has_capacity) is true.
    Submitted(Submission),
    /// The last [`LinkEffect::Spool`] is done.
    Spooled,
    /// The last [`LinkEffect::Spool`] has failed, and no part of it is in the spool.
    SpoolFailed { reason: String },
    /// The last [`LinkEffect::Apply`] is done.
    Applied,
    /// The last [`LinkEffect::Apply`] has failed. Items of it may be stored.
    ApplyFailed { reason: String },
    /// A member was started. Items of its earlier starts are dropped from now on.
    SpawnStarted(MemberGeneration),
}

/// An action that a link requests. The actions are carried out in order. [`LinkEffect::Spool`] and
/// [`LinkEffect::Apply`] may take long. Meanwhile the link requests other actions, but no second
/// `Spool` before the first has ended, and no second `Apply`.
#[derive(Debug)]
pub enum LinkEffect {
    /// Run the connect command. Only at the home.
    Connect { connection: ConnectionNumber },
    /// Send a frame.
    Send { connection: ConnectionNumber, frame: LinkFrame },
    /// Close the connection after the frames that were sent. The connection may be closed already.
    Close { connection: ConnectionNumber },
    /// Write to the spool.
    Spool(SpoolWrite),
    /// Give items to the application, which stores them and the position.
    Apply { items: Vec<Arc<LinkItem>>, position: ReceivedPosition },
    /// Report a change to the daemon.
    Report(LinkReport),
}

/// A change that the daemon may show or act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkReport {
    /// The link works.
    Connected {
        /// The release of the other end's program.
        program_version: String,
    },
    /// The link is interrupted.
    Disconnected(DisconnectReason),
    /// This end has refused a connection.
    Refused(LinkRefusal),
    /// The submissions up to this number are in the spool and will arrive.
    Accepted { number: u64 },
    /// A write to the spool has failed. The link keeps the submitted items in memory, does not send
    /// them, and repeats the write after a pause.
    SpoolFailed { reason: String },
    /// The spool can be written again.
    SpoolWorks,
    /// Received items stay in memory and are not acknowledged, because they can't be stored.
    ApplyFailed { reason: String },
    /// Received items can be stored again.
    ApplyWorks,
    /// The other end cannot write its files.
    StorageFailedThere { reason: String },
    /// The other end can write its files again.
    StorageWorksThere,
    /// Items of earlier starts of members were dropped.
    Dropped {
        /// How many, since the process started.
        total: u64,
    },
}
