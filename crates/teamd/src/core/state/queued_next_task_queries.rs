//! The queries for an agent's next task. A query waits until the watcher has reported all earlier
//! file changes. For this, the daemon creates a barrier file, which the watcher reports after all
//! earlier changes.

use crate::core::effect::{Effect, Effects};
use crate::core::jobs::file_jobs::NextTaskQuery;

/// The waiting queries for an agent's next task, and the numbers of the barrier files.
#[derive(Debug, Default)]
pub(crate) struct NextTaskQueue {
    /// The queries that wait for a barrier.
    pub(crate) waiting: Vec<QueuedQuery>,
    /// The number of the last barrier file that was created.
    pub(crate) created: u64,
    /// The number of the last barrier file for which no query waits any more: the watcher has
    /// reported this file, or the watcher has failed or lost events.
    pub(crate) reached: u64,
}

/// A query, and the number of the barrier file after which the query can be answered.
#[derive(Debug)]
pub(crate) struct QueuedQuery {
    pub(crate) query: NextTaskQuery,
    pub(crate) barrier: u64,
}

impl NextTaskQueue {
    /// Creates the next barrier file if a query waits, but not while the watcher still has to
    /// report an earlier barrier file. Queries that arrive meanwhile share the next barrier file.
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
