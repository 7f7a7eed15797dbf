//! The commands for the file watcher.

use protocol::team_and_member_names::TeamName;

/// A command for the file watcher. Commands run in order.
#[derive(Debug, Clone)]
pub(crate) enum WatcherCommand {
    /// Watch a root directory that was opened again. One more command for each team follows.
    WatchRoot,
    WatchTeam(TeamName),
    UnwatchTeam(TeamName),
    /// Create a barrier file: an empty file in a watched directory. When the daemon gets the file
    /// event about the barrier file, it has got the events about all earlier changes.
    CreateBarrier(u64),
    /// Send `CoreEvent::WatchesAdded` once all earlier commands are done.
    ConfirmWatches(WatchPurpose),
}

/// What follows once the watches are in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchPurpose {
    /// The files are scanned.
    Scan,
    /// The files are scanned, and a probe file shows whether the watcher delivers events.
    Probe,
}
