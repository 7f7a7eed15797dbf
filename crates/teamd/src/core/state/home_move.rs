//! A move of a team's home to another host, which was begun here.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use protocol::error_kind_and_report::ErrorReport;
use protocol::hosts_file_entry::HostName;

/// A move of a team's home. This host does not change the team while the move lasts.
#[derive(Debug)]
pub(crate) struct HomeMove {
    /// The host that is to be the home.
    pub(crate) host: HostName,
    /// Since when, as Unix time in milliseconds.
    pub(crate) since: u64,
    pub(crate) step: HomeMoveStep,
    /// The client that waits for the end of the move. `None` if its reply was sent, or if an
    /// earlier daemon began the move.
    pub(crate) waiter: Option<MoveWaiter>,
}

impl HomeMove {
    /// When the waiting client gets an error, in milliseconds on the monotonic clock. `None` if no
    /// client waits.
    pub(crate) fn deadline(&self) -> Option<u64> {
        Some(self.waiter.as_ref()?.deadline)
    }
}

/// The client that waits for the end of a move.
#[derive(Debug)]
pub(crate) struct MoveWaiter {
    pub(crate) client: ConnId,
    /// When the client gets an error, in milliseconds on the monotonic clock.
    pub(crate) deadline: u64,
}

/// How far a move has come.
#[derive(Debug)]
pub(crate) enum HomeMoveStep {
    /// Both hosts exchange what they have, until the host answers this barrier.
    Exchanging { barrier: u64 },
    /// The host gets no offer. This host undoes its record of the move.
    Cancelling { error: ErrorReport },
    /// The home was offered to the host. Only its answer ends the move.
    Offered,
}
