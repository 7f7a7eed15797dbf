//! Clients whose answer comes later: when agents have ended, or when their screens were looked at.

use crate::core::id::{ConnId, SpawnId};
use protocol::control::{AgentExit, DeleteTeamRequest};
use std::collections::BTreeSet;

/// A client that waits for several ends.
#[derive(Debug)]
pub(crate) struct ExitWaiter {
    pub(crate) client: ConnId,
    pub(crate) pending: BTreeSet<SpawnId>,
    pub(crate) ended: Vec<AgentExit>,
    pub(crate) after: AfterExits,
}

impl ExitWaiter {
    /// A wait for these; `ended` are those that need none.
    pub(crate) fn new(
        client: ConnId,
        ids: &BTreeSet<SpawnId>,
        ended: Vec<AgentExit>,
        then: AfterExits,
    ) -> ExitWaiter {
        ExitWaiter { client, pending: ids.clone(), ended, after: then }
    }
}

/// What follows when all that was waited for has ended.
#[derive(Debug, Clone)]
pub(crate) enum AfterExits {
    /// The answer.
    Reply,
    /// The team's worktrees and files go.
    Delete(DeleteTeamRequest),
    /// The daemon goes.
    StopDaemon,
}

/// Clients that wait for a look at the screens. One is under way at a time, however slow tmux is.
#[derive(Debug, Default)]
pub(crate) struct ScreenWaiters {
    /// Who waits for the look that is under way.
    pub(crate) current: Option<Vec<ScreenWaiter>>,
    /// Who came since it began, and waits for the next.
    pub(crate) queued: Vec<ScreenWaiter>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScreenWaiter {
    pub(crate) client: ConnId,
    /// Then it is answered without, on `crate::event::Now::mono`.
    pub(crate) deadline: u64,
}

/// A client that waits for the end of an agent's turn.
#[derive(Debug)]
pub(crate) struct InterruptWaiter {
    pub(crate) client: ConnId,
    pub(crate) spawn: SpawnId,
}

/// A spawn that can be registered, and waits for others of its batch.
#[derive(Debug)]
pub(crate) struct QueuedRegistration {
    pub(crate) spawn: SpawnId,
    /// In milliseconds on the monotonic clock.
    pub(crate) since: u64,
}
