//! The queue of jobs for the mirrors of one link.

use crate::core::jobs::host_jobs::MirrorJob;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Jobs in the order in which they run. A comparison that already waits is not added again, so a file
/// that changes often is compared once. At the end of the queue, a new `NoteAccepted` replaces an
/// earlier one.
#[derive(Debug, Default)]
pub(super) struct MirrorQueue {
    state: Mutex<QueueState>,
    added: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<MirrorJob>,
    is_closed: bool,
}

impl MirrorQueue {
    pub(super) fn push(&self, job: MirrorJob) {
        let jobs = &mut self.lock().jobs;
        if let (MirrorJob::NoteAccepted(_), Some(last @ MirrorJob::NoteAccepted(_))) = (&job, jobs.back_mut())
        {
            *last = job;
        } else if !(is_comparison(&job) && jobs.contains(&job)) {
            jobs.push_back(job);
            self.added.notify_one();
        }
    }

    /// Waits for the next job. `None` if the link has ended for good.
    pub(super) fn pop(&self) -> Option<MirrorJob> {
        let mut state = self.lock();
        loop {
            match state.jobs.pop_front() {
                _ if state.is_closed => return None,
                Some(job) => return Some(job),
                None => state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends the thread of the mirrors. Jobs that wait do not run.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.added.notify_one();
    }

    /// The next job, for the simulated link. `None` if no job waits.
    #[cfg(test)]
    pub(super) fn try_pop(&self) -> Option<MirrorJob> {
        self.lock().jobs.pop_front()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().jobs.is_empty()
    }

    /// Waits for `pause`, or until another job is added. Then adds a job that has failed as the next
    /// one. A later job can depend on it: the end of a team comes before its new beginning.
    pub(super) fn push_first_after_pause(&self, job: MirrorJob, pause: Duration) {
        drop(self.added.wait_timeout(self.lock(), pause));
        self.push_first(job);
    }

    /// Adds a job that has failed as the next one.
    pub(super) fn push_first(&self, job: MirrorJob) {
        self.lock().jobs.push_front(job);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the job only compares files. It then does not matter which of two equal jobs runs.
fn is_comparison(job: &MirrorJob) -> bool {
    matches!(job, MirrorJob::Compare { .. } | MirrorJob::CompareAll)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_job_runs_once_and_order_is_kept() {
        let queue = MirrorQueue::default();
        for job in [MirrorJob::CompareAll, MirrorJob::SendBarrier(1), MirrorJob::CompareAll] {
            queue.push(job);
        }
        queue.push(MirrorJob::NoteAccepted(1));
        queue.push(MirrorJob::NoteAccepted(2));
        let jobs = [queue.pop(), queue.pop(), queue.pop()];
        let expected = [MirrorJob::CompareAll, MirrorJob::SendBarrier(1), MirrorJob::NoteAccepted(2)];
        assert_eq!(jobs, expected.map(Some));
        queue.push(MirrorJob::CompareAll);
        queue.close();
        assert_eq!(queue.pop(), None);
    }
}
