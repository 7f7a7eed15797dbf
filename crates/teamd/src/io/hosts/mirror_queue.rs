//! The queue of jobs for the mirrors of one link.

use crate::core::jobs::host_jobs::MirrorJob;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Jobs in the order in which they run. A job that already waits is not added again, so a file that
/// changes often is compared once. At the end of the queue, a new `NoteAccepted` replaces an
/// earlier one.
#[derive(Debug, Default)]
pub(super) struct MirrorQueue {
    jobs: Mutex<VecDeque<MirrorJob>>,
    added: Condvar,
}

impl MirrorQueue {
    pub(super) fn push(&self, job: MirrorJob) {
        let mut jobs = self.lock();
        if let (MirrorJob::NoteAccepted(_), Some(last @ MirrorJob::NoteAccepted(_))) = (&job, jobs.back_mut())
        {
            *last = job;
        } else if !jobs.contains(&job) {
            jobs.push_back(job);
            self.added.notify_one();
        }
    }

    /// Waits for the next job.
    pub(super) fn pop(&self) -> MirrorJob {
        let mut jobs = self.lock();
        loop {
            match jobs.pop_front() {
                Some(job) => return job,
                None => jobs = self.added.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Waits for `pause`, or until another job is added. Then adds a job that has failed as the next
    /// one. A later job can depend on it: the end of a team comes before its new beginning.
    pub(super) fn push_first_after_pause(&self, job: MirrorJob, pause: Duration) {
        drop(self.added.wait_timeout(self.lock(), pause));
        self.lock().push_front(job);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<MirrorJob>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
        assert_eq!(jobs, [MirrorJob::CompareAll, MirrorJob::SendBarrier(1), MirrorJob::NoteAccepted(2)]);
    }
}
