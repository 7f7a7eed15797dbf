//! The stage of the deletion of a team.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::roster::AcceptedDeletion;

/// The stage of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Deletion {
    /// A client has asked for the deletion of a team that still has members. Before the first
    /// member is killed, the daemon checks whether the team's files or worktrees prevent the
    /// deletion.
    Checking,
    /// The deletion was accepted: the members are killed, then the worktrees are removed, then the
    /// files. The roster has the accepted deletion, so that the next daemon can complete it.
    Accepted {
        accepted: AcceptedDeletion,
        /// The members that the deletion kills.
        killed: Vec<String>,
        /// Clients that sent the same request again. They get the same reply.
        joined: Vec<ConnId>,
    },
}
