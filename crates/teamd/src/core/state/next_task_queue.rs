//! Queries for the next task that wait until the watcher has delivered all changes before them.

use crate::core::effect::{Effect, Effects};
use crate::core::jobs::files::NextTaskQuery;

/// What is asked, and how far the watcher is.
#[derive(Debug, Default)]
pub(crate) struct NextTaskQueue {
    /// Who asks, and behind which mark the answer lies.
    pub(crate) waiting: Vec<QueuedQuery>,
    /// The last mark that was made.
    pub(crate) created: u64,
    /// The last one that was told of, or that nobody will tell of any more.
    pub(crate) reached: u64,
}

/// A query, and the barrier after which it can be answered.
#[derive(Debug)]
pub(crate) struct QueuedQuery {
    pub(crate) query: NextTaskQuery,
    pub(crate) barrier: u64,
}

impl NextTaskQueue {
    /// One at a time: who asks meanwhile shares the next.
    pub(crate) fn create_barrier(&mut self, effects: &mut Effects) {
        if self.created == self.reached && !self.waiting.is_empty() {
            self.created += 1;
            effects.push(Effect::CreateBarrier { mark: self.created });
        }
    }

    /// Whose answer lies behind no later mark.
    pub(crate) fn take_ready(&mut self, told: u64) -> Vec<NextTaskQuery> {
        // One that nobody has made is another daemon's.
        self.reached = self.reached.max(told.min(self.created));
        let all = std::mem::take(&mut self.waiting);
        let (ready, waiting) = all.into_iter().partition(|queued: &QueuedQuery| queued.barrier <= told);
        self.waiting = waiting;
        Vec::into_iter(ready).map(|queued| queued.query).collect()
    }
}
