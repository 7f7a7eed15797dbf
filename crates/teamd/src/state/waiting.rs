//! Clients whose answer comes later: when agents have ended, or when their screens were looked at.

use crate::event::ConnId;
use crate::roster::SpawnId;
use protocol::control::{AgentExit, DeleteTeamRequest};
use std::collections::BTreeSet;

/// A client that waits for several ends.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) client: ConnId,
    pub(crate) pending: BTreeSet<SpawnId>,
    pub(crate) ended: Vec<AgentExit>,
    pub(crate) then: Then,
}

impl Waiting {
    /// A wait for these; `ended` are those that need none.
    pub(crate) fn of(client: ConnId, ids: &BTreeSet<SpawnId>, ended: Vec<AgentExit>, then: Then) -> Waiting {
        Waiting { client, pending: ids.clone(), ended, then }
    }
}

/// What follows when all that was waited for has ended.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// The answer.
    Reply,
    /// The team's worktrees and files go.
    Delete(DeleteTeamRequest),
    /// The daemon goes.
    Down,
}

/// Clients that wait for a look at the screens. One is under way at a time, however slow tmux is.
#[derive(Debug, Default)]
pub(crate) struct Onlookers {
    /// Who waits for the look that is under way.
    pub(crate) under_way: Option<Vec<Onlooker>>,
    /// Who came since it began, and waits for the next.
    pub(crate) next: Vec<Onlooker>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Onlooker {
    pub(crate) client: ConnId,
    /// Then it is answered without, on [`crate::event::Now::mono`].
    pub(crate) until: u64,
}
