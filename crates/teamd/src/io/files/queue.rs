//! The queue of file jobs for the files thread. Jobs run in order, except the jobs that write the
//! roster: if several rosters wait, only the newest is written, at the position of the oldest.
//!
//! The newest roster may therefore be written before other jobs that were queued earlier. This is
//! safe even if the daemon is killed between the two:
//!
//! - A member leaves the roster only when its deregistration has been reported as done.
//! - If the team files lack a lead's session id or a member's permission mode, the next daemon
//!   writes it again.
//! - Only lines of the event log can be lost.
//!
//! A roster must not be written later than its position in the queue. The roster on disk must name
//! an agent before the agent runs, and must contain an exit before the lead is notified of the
//! exit.

use crate::core::jobs::file_jobs::FileJob;
use crate::core::roster::Roster;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The newest roster that waits to be written.
type NewestRoster = Arc<Mutex<Option<Roster>>>;

/// An entry of the queue.
#[derive(Debug)]
enum QueueEntry {
    Job(Box<FileJob>),
    /// The position at which the newest roster is written.
    Roster,
}

/// The sending end of the queue of file jobs. All jobs of one event are sent together, so that the
/// files thread wakes up only once.
#[derive(Debug)]
pub(crate) struct JobSender {
    pending: Vec<QueueEntry>,
    entries: Sender<Vec<QueueEntry>>,
    newest: NewestRoster,
}

/// The receiving end of the queue of file jobs: an iterator that ends when the sender is dropped
/// and all jobs have been taken.
#[derive(Debug)]
pub(super) struct JobReceiver {
    entries: Receiver<Vec<QueueEntry>>,
    received: VecDeque<QueueEntry>,
    newest: NewestRoster,
    /// The next job, if `next_if` has read it and left it in the queue.
    next: Option<FileJob>,
}

pub(super) fn new_queue() -> (JobSender, JobReceiver) {
    let (sender, receiver) = channel();
    let newest = NewestRoster::default();
    let jobs = JobSender { pending: Vec::new(), entries: sender, newest: newest.clone() };
    (jobs, JobReceiver { entries: receiver, received: VecDeque::new(), newest, next: None })
}

impl JobSender {
    /// Adds a job to the jobs that the next [`JobSender::flush`] sends.
    pub(crate) fn push(&mut self, job: FileJob) {
        let entry = match job {
            FileJob::SaveRoster(roster) => match swap_roster(&self.newest, Some(roster)) {
                Some(_) => return,
                None => QueueEntry::Roster,
            },
            job => QueueEntry::Job(Box::new(job)),
        };
        self.pending.push(entry);
    }

    /// Sends the jobs to the thread. If the thread has ended, they are dropped.
    pub(crate) fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.entries.send(std::mem::take(&mut self.pending)).ok();
        }
    }
}

impl Iterator for JobReceiver {
    type Item = FileJob;

    fn next(&mut self) -> Option<FileJob> {
        if let Some(job) = self.next.take() {
            return Some(job);
        }
        while self.received.is_empty() {
            self.received.extend(self.entries.recv().ok()?);
        }
        let entry = self.received.pop_front()?;
        self.resolve(entry)
    }
}

impl JobReceiver {
    /// Takes the next job if one waits and `is_wanted` accepts it. Never blocks.
    pub(super) fn next_if(&mut self, is_wanted: impl FnOnce(&FileJob) -> bool) -> Option<FileJob> {
        if self.next.is_none() {
            while let Ok(entries) = self.entries.try_recv() {
                self.received.extend(entries);
            }
            let entry = self.received.pop_front()?;
            self.next = self.resolve(entry);
        }
        self.next.take_if(|job| is_wanted(job))
    }

    /// The job of an entry.
    fn resolve(&self, entry: QueueEntry) -> Option<FileJob> {
        match entry {
            QueueEntry::Job(job) => Some(*job),
            QueueEntry::Roster => swap_roster(&self.newest, None).map(FileJob::SaveRoster),
        }
    }
}

fn swap_roster(newest: &NewestRoster, roster: Option<Roster>) -> Option<Roster> {
    std::mem::replace(&mut *newest.lock().unwrap_or_else(PoisonError::into_inner), roster)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(version: u32) -> FileJob {
        FileJob::SaveRoster(Roster { version, ..Roster::default() })
    }

    /// The remaining jobs as text. A roster is shown as its version.
    fn remaining_jobs(queue: JobReceiver) -> Vec<String> {
        let to_text = |job| match job {
            FileJob::SaveRoster(roster) => roster.version.to_string(),
            job => format!("{job:?}"),
        };
        queue.map(to_text).collect()
    }

    #[test]
    fn the_newest_waiting_roster_takes_the_place_of_the_oldest() {
        let (mut jobs, mut queue) = new_queue();
        for job in [roster(1), FileJob::ProbeWatcher, roster(2), FileJob::ListSessionTeams, roster(3)] {
            jobs.push(job);
        }
        jobs.flush();
        assert!(matches!(queue.next(), Some(FileJob::SaveRoster(Roster { version: 3, .. }))));
        // A roster that is queued afterwards gets a new place.
        jobs.push(roster(4));
        jobs.flush();
        drop(jobs);
        assert_eq!(remaining_jobs(queue), ["ProbeWatcher", "ListSessionTeams", "4"]);
    }

    #[test]
    fn next_if_keeps_a_rejected_job_and_never_blocks() {
        let (mut jobs, mut queue) = new_queue();
        assert!(queue.next_if(|_| true).is_none());
        jobs.push(FileJob::ProbeWatcher);
        jobs.push(roster(1));
        jobs.flush();
        assert!(queue.next_if(|job| matches!(job, FileJob::ListSessionTeams)).is_none());
        jobs.push(roster(2));
        jobs.flush();
        assert!(matches!(
            queue.next_if(|job| matches!(job, FileJob::ProbeWatcher)),
            Some(FileJob::ProbeWatcher)
        ));
        assert!(matches!(queue.next_if(|_| true), Some(FileJob::SaveRoster(Roster { version: 2, .. }))));
        jobs.push(FileJob::ProbeWatcher);
        jobs.flush();
        assert!(queue.next_if(|_| false).is_none());
        drop(jobs);
        assert_eq!(remaining_jobs(queue), ["ProbeWatcher"]);
    }
}
