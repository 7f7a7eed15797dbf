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
    job_ended: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    jobs: VecDeque<MirrorJob>,
    /// The comparisons among the jobs. After a start, a large team has thousands.
    comparisons: HashSet<Comparison>,
    /// Whether the thread of the mirrors runs a job.
    is_running: bool,
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

    fn push_first(&mut self, job: MirrorJob) {
        self.comparisons.extend(Comparison::from_job(&job));
        self.jobs.push_front(job);
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

    /// Ends the last job, and waits for the next one. `None` if the link has ended for good.
    pub(super) fn pop(&self) -> Option<MirrorJob> {
        let mut state = self.lock();
        state.is_running = false;
        self.job_ended.notify_all();
        loop {
            match state.pop() {
                _ if state.is_closed => return None,
                Some(job) => {
                    state.is_running = true;
                    return Some(job);
                }
                None => state = self.added.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends the thread of the mirrors. Jobs that wait do not run.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.added.notify_one();
    }

    /// Closes the queue, and waits until the job that runs has ended.
    pub(super) fn close_and_wait(&self) {
        self.close();
        let is_running = |state: &mut QueueState| state.is_running;
        drop(self.job_ended.wait_while(self.lock(), is_running).unwrap_or_else(PoisonError::into_inner));
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

    /// Waits for `pause`, or until a job is added or the queue is closed. Then puts the failed
    /// `job` at the front of the queue. Later jobs may depend on it, so they wait. For example, the
    /// mirror of a deleted team must end before the mirror of a new team with this name begins.
    pub(super) fn push_first_after_pause(&self, job: MirrorJob, pause: Duration) {
        let mut state = self.lock();
        if !state.is_closed {
            let waited = self.added.wait_timeout(state, pause);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.push_first(job);
    }

    /// Adds a job that has failed as the next one, for the simulated link.
    #[cfg(test)]
    pub(super) fn push_first(&self, job: MirrorJob) {
        self.lock().push_first(job);
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

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

    #[test]
    fn closing_waits_for_the_running_job() {
        let queue = MirrorQueue::default();
        queue.push(MirrorJob::CompareAll);
        let job = queue.pop().unwrap();
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // The pause ends when the queue is closed.
                queue.push_first_after_pause(job, Duration::from_secs(60));
                has_ended.store(true, Ordering::SeqCst);
                assert_eq!(queue.pop(), None);
            });
            queue.close_and_wait();
            assert!(has_ended.load(Ordering::SeqCst));
        });
    }
}
