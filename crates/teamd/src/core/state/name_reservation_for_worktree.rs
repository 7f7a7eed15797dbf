//! The reservation of a member's name for a worktree.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use std::path::PathBuf;

/// Why a name is reserved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameReservation {
    /// The worktree is being created.
    Creating {
        /// The client that waits for the worktree. `None` if it has gone.
        client: Option<ConnId>,
        /// The path of the worktree, from when git and the setup command work in it.
        path: Option<PathBuf>,
    },
    /// The worktree exists. The reservation ends at this time, in milliseconds on the monotonic
    /// clock, if the member was not spawned by then.
    ReservedUntil(u64),
}
