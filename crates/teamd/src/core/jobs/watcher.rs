//! The commands for the watcher of files.

use protocol::name::TeamName;

/// One thing to do; they are done in order.
#[derive(Debug, Clone)]
pub(crate) enum WatchCommand {
    /// Watch the root anew, and no team yet.
    WatchRoot,
    WatchTeam(TeamName),
    UnwatchTeam(TeamName),
    /// See `Watch::mark`.
    CreateBarrier(u64),
    /// Say `Event::Watched` behind all that was asked before.
    ConfirmWatches {
        is_probe: bool,
    },
}
