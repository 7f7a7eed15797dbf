//! The way to the files thread: its jobs in order, but that of rosters which wait only the newest is written, in the
//! place of the oldest.
//!
//! A roster may be on the disk earlier than the jobs that were given ahead of it. Nobody leaves it before the thread has
//! told that all is done for that; and what it says of a lead's session or a member's mode before the files say so is written
//! again by the next daemon, or read from them. Lines of the event log alone are lost with a daemon that is killed just
//! then. Later than those jobs it must not be: an agent is known before it runs, and an end before anybody is told of it.

use crate::core::jobs::files::FileJob;
use crate::core::roster::Roster;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The newest roster that waits.
type NewestRoster = Arc<Mutex<Option<Roster>>>;

/// A place in the queue.
#[derive(Debug)]
enum QueueEntry {
    Job(Box<FileJob>),
    /// Of the newest roster.
    Roster,
}

/// Gives jobs to the thread: those of one event at once, so that it is woken once.
#[derive(Debug)]
pub(crate) struct JobSender {
    pending: Vec<QueueEntry>,
    places: Sender<Vec<QueueEntry>>,
    newest: NewestRoster,
}

/// Takes them; ends when nobody can give any more and all are taken.
#[derive(Debug)]
pub(super) struct JobReceiver {
    places: Receiver<Vec<QueueEntry>>,
    taken: VecDeque<QueueEntry>,
    newest: NewestRoster,
    /// Looked at, and not taken.
    next: Option<FileJob>,
}

pub(super) fn new_queue() -> (JobSender, JobReceiver) {
    let (sender, receiver) = channel();
    let newest = NewestRoster::default();
    let jobs = JobSender { pending: Vec::new(), places: sender, newest: newest.clone() };
    (jobs, JobReceiver { places: receiver, taken: VecDeque::new(), newest, next: None })
}

impl JobSender {
    /// Behind those that wait, with the next `JobSender::go`.
    pub(crate) fn push(&mut self, job: FileJob) {
        let place = match job {
            FileJob::SaveRoster(roster) => match swap_roster(&self.newest, Some(roster)) {
                Some(_) => return,
                None => QueueEntry::Roster,
            },
            job => QueueEntry::Job(Box::new(job)),
        };
        self.pending.push(place);
    }

    /// Where the thread has ended they go nowhere.
    pub(crate) fn flush(&mut self) {
        if !self.pending.is_empty() {
            self.places.send(std::mem::take(&mut self.pending)).ok();
        }
    }
}

impl Iterator for JobReceiver {
    type Item = FileJob;

    fn next(&mut self) -> Option<FileJob> {
        if let Some(job) = self.next.take() {
            return Some(job);
        }
        while self.taken.is_empty() {
            self.taken.extend(self.places.recv().ok()?);
        }
        let place = self.taken.pop_front()?;
        self.resolve(place)
    }
}

impl JobReceiver {
    /// The next one, if one waits and is wanted.
    pub(super) fn next_if(&mut self, is_wanted: impl FnOnce(&FileJob) -> bool) -> Option<FileJob> {
        if self.next.is_none() {
            while let Ok(given) = self.places.try_recv() {
                self.taken.extend(given);
            }
            let place = self.taken.pop_front()?;
            self.next = self.resolve(place);
        }
        self.next.take_if(|job| is_wanted(job))
    }

    fn resolve(&self, place: QueueEntry) -> Option<FileJob> {
        match place {
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

    /// What comes out, a roster by its version.
    fn taken(queue: JobReceiver) -> Vec<String> {
        let word = |job| match job {
            FileJob::SaveRoster(roster) => roster.version.to_string(),
            job => format!("{job:?}"),
        };
        queue.map(word).collect()
    }

    #[test]
    fn of_rosters_that_wait_the_newest_is_taken_in_the_place_of_the_oldest() {
        let (mut jobs, mut queue) = new_queue();
        for job in [roster(1), FileJob::ProbeWatcher, roster(2), FileJob::ListSessionTeams, roster(3)] {
            jobs.push(job);
        }
        jobs.flush();
        assert!(matches!(queue.next(), Some(FileJob::SaveRoster(Roster { version: 3, .. }))));
        // What comes after it was taken has a place of its own.
        jobs.push(roster(4));
        jobs.flush();
        drop(jobs);
        assert_eq!(taken(queue), ["ProbeWatcher", "ListSessionTeams", "4"]);
    }

    #[test]
    fn what_waits_and_is_not_wanted_stays_the_next_and_nothing_is_waited_for() {
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
        assert_eq!(taken(queue), ["ProbeWatcher"]);
    }
}
