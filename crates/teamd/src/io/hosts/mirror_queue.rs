//! The queue of jobs for the mirrors of one link.

use crate::core::jobs::host_jobs::MirrorJob;
use mirror::FileChange;
use protocol::team_and_member_names::TeamName;
use std::collections::{HashSet, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Jobs in the order in which they run. A job that compares a file is added only if the queue does
/// not have it yet. So a file that changes often is compared once. A [`MirrorJob::NoteAccepted`]
/// replaces a job of the same kind at the end of the queue.
#[derive(Debug, Default)]
pub(super) struct MirrorQueue {
    state: Mutex<QueueState>,
    added: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<MirrorJob>,
    /// The comparisons among the jobs. After a start, a large team has thousands.
    comparisons: HashSet<Comparison>,
    is_closed: bool,
}

/// A job that only compares files. It does not matter which of two equal jobs runs.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Comparison {
    All,
    File(TeamName, FileChange),
}

impl Comparison {
    fn from_job(job: &MirrorJob) -> Option<Comparison> {
        match job {
            MirrorJob::CompareAll => Some(Comparison::All),
            MirrorJob::Compare { team, change } => Some(Comparison::File(team.clone(), change.clone())),
            _ => None,
        }
    }
}

impl QueueState {
    fn pop(&mut self) -> Option<MirrorJob> {
        let job = self.jobs.pop_front()?;
        if let Some(comparison) = Comparison::from_job(&job) {
            self.comparisons.remove(&comparison);
        }
        Some(job)
    }
}

impl MirrorQueue {
    pub(super) fn push(&self, job: MirrorJob) {
        let mut state = self.lock();
        if let (MirrorJob::NoteAccepted(_), Some(last @ MirrorJob::NoteAccepted(_))) =
            (&job, state.jobs.back_mut())
        {
            *last = job;
        } else if Comparison::from_job(&job).is_none_or(|comparison| state.comparisons.insert(comparison)) {
            state.jobs.push_back(job);
            self.added.notify_one();
        }
    }

    /// Waits for the next job. `None` if the link has ended for good.
    pub(super) fn pop(&self) -> Option<MirrorJob> {
        let mut state = self.lock();
        loop {
            match state.pop() {
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
        self.lock().pop()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lock().jobs.is_empty()
    }

    /// Waits for `pause` or until a job is added, and then puts the failed `job` at the front of
    /// the queue. Later jobs may depend on it, so they wait. For example, the mirror of a deleted
    /// team must end before the mirror of a new team with this name begins.
    pub(super) fn push_first_after_pause(&self, job: MirrorJob, pause: Duration) {
        drop(self.added.wait_timeout(self.lock(), pause));
        self.push_first(job);
    }

    /// Adds a job that has failed as the next one.
    pub(super) fn push_first(&self, job: MirrorJob) {
        let mut state = self.lock();
        state.comparisons.extend(Comparison::from_job(&job));
        state.jobs.push_front(job);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        let expected = [MirrorJob::CompareAll, MirrorJob::SendBarrier(1), MirrorJob::NoteAccepted(2)];
        assert_eq!(jobs, expected.map(Some));
        queue.push(MirrorJob::CompareAll);
        queue.close();
        assert_eq!(queue.pop(), None);
    }
}
