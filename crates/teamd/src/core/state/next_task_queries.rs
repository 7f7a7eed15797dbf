//! Queries for the next task that wait until the watcher has delivered all changes before them.

use crate::core::effect::{Effect, Effects};
use crate::core::jobs::file_jobs::NextTaskQuery;

/// The queries for the next task that wait, and which barriers the watcher has reached.
#[derive(Debug, Default)]
pub(crate) struct NextTaskQueue {
    /// The queries that wait for a barrier.
    pub(crate) waiting: Vec<QueuedQuery>,
    /// The last barrier that was created.
    pub(crate) created: u64,
    /// The last barrier that is no longer awaited: either the watcher has reached it, or the
    /// watcher has failed.
    pub(crate) reached: u64,
}

/// A query, and the barrier after which it can be answered.
#[derive(Debug)]
pub(crate) struct QueuedQuery {
    pub(crate) query: NextTaskQuery,
    pub(crate) barrier: u64,
}

impl NextTaskQueue {
    /// Creates a barrier file if a query for the next task waits and no barrier is under way.
    /// Queries that come while a barrier is under way wait for the next barrier, which they share.
    pub(crate) fn create_barrier(&mut self, effects: &mut Effects) {
        if self.created == self.reached && !self.waiting.is_empty() {
            self.created += 1;
            effects.push(Effect::CreateBarrier { barrier: self.created });
        }
    }

    /// Takes the queries whose barrier is reached.
    pub(crate) fn take_ready(&mut self, barrier: u64) -> Vec<NextTaskQuery> {
        // A higher number is a barrier of another daemon.
        self.reached = self.reached.max(barrier.min(self.created));
        let queries = std::mem::take(&mut self.waiting);
        let (ready, waiting) =
            queries.into_iter().partition(|queued: &QueuedQuery| queued.barrier <= barrier);
        self.waiting = waiting;
        Vec::into_iter(ready).map(|queued| queued.query).collect()
    }
}
