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
    /// Send `CoreEvent::WatchesAdded` when all earlier commands are done. `is_probe` is returned
    /// with the event.
    ConfirmWatches {
        is_probe: bool,
    },
}
