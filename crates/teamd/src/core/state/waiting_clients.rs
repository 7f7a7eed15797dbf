//! Clients whose reply comes later: after exits, after a turn, or after screens were captured.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use protocol::control_socket::{AgentExit, DeleteTeamRequest};
use std::collections::BTreeSet;

/// A client, or the deletion of a team, that waits for the exits of agents.
#[derive(Debug)]
pub(crate) struct ExitWaiter {
    pub(crate) pending: BTreeSet<SpawnId>,
    pub(crate) exits: Vec<AgentExit>,
    pub(crate) after: AfterExits,
}

impl ExitWaiter {
    /// Creates a waiter for the exits of the agents `ids`. `exits` describes agents that had exited
    /// before the wait began. The reply lists these agents too.
    pub(crate) fn new(ids: &BTreeSet<SpawnId>, exits: Vec<AgentExit>, after: AfterExits) -> ExitWaiter {
        ExitWaiter { pending: ids.clone(), exits, after }
    }
}

/// What follows once all agents have exited.
#[derive(Debug, Clone)]
pub(crate) enum AfterExits {
    /// The client gets its reply.
    Reply(ConnId),
    /// The daemon deletes the worktrees and files of the team. The client is `None` if an earlier
    /// daemon began the deletion.
    Delete(Option<ConnId>, DeleteTeamRequest),
    /// The client gets its reply, and the daemon ends.
    StopDaemon(ConnId),
}

/// Clients that wait for a status with dialogs. To find the dialogs, the daemon captures all
/// screens. One capture serves a group of clients, and only one capture runs at a time.
#[derive(Debug, Default)]
pub(crate) struct ScreenWaiters {
    /// The clients that wait for the capture that is under way. Empty if a rescan has started this
    /// capture. `None` if no capture is under way.
    pub(crate) current: Option<Vec<ScreenWaiter>>,
    /// The clients of the next group.
    pub(crate) queued: Vec<ScreenWaiter>,
    /// When a rescan captures the screens again, in milliseconds on the monotonic clock.
    pub(crate) next_capture_at: u64,
}

/// A client that waits for the status with dialogs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScreenWaiter {
    pub(crate) client: ConnId,
    /// When the client gets its reply without dialogs, in milliseconds on the monotonic clock.
    pub(crate) deadline: u64,
}

/// A client that waits for the end of an agent's turn.
#[derive(Debug)]
pub(crate) struct InterruptWaiter {
    pub(crate) client: ConnId,
    pub(crate) spawn: SpawnId,
}
