//! Clients whose answer comes when agents have ended.

use crate::event::ConnId;
use crate::roster::SpawnId;
use protocol::control::{Delete, EndedAgent};
use std::collections::BTreeSet;

/// A client that waits for several ends.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) client: ConnId,
    pub(crate) pending: BTreeSet<SpawnId>,
    pub(crate) ended: Vec<EndedAgent>,
    pub(crate) then: Then,
}

impl Waiting {
    /// A wait for these; `ended` are those that need none.
    pub(crate) fn of(client: ConnId, ids: &BTreeSet<SpawnId>, ended: Vec<EndedAgent>, then: Then) -> Waiting {
        Waiting { client, pending: ids.clone(), ended, then }
    }
}

/// What follows when all that was waited for has ended.
#[derive(Debug, Clone)]
pub(crate) enum Then {
    /// The answer.
    Reply,
    /// The team's worktrees and files go.
    Delete(Delete),
    /// The daemon goes.
    Down,
}
