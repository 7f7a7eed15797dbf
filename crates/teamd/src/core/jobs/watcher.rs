//! The commands of the event loop for the watcher thread.

use protocol::name::TeamName;

/// A command for the watcher thread. Commands run in order.
#[derive(Debug, Clone)]
pub(crate) enum WatchCommand {
    /// Start a new watcher, which watches the root and no team yet.
    WatchRoot,
    WatchTeam(TeamName),
    UnwatchTeam(TeamName),
    /// Create the barrier with this number.
    CreateBarrier(u64),
    /// Say `Event::Watched` behind all that was asked before.
    ConfirmWatches(WatchPurpose),
}

/// What follows once the watches are in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchPurpose {
    /// The files are scanned.
    Scan,
    /// The same, and a probe file shows whether the watcher delivers events.
    Probe,
}
