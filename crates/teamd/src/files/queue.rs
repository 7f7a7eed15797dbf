//! The way to the files thread: its jobs in order, but that of rosters which wait only the newest is written, in the
//! place of the oldest.
//!
//! A roster may be on the disk earlier than the jobs that were given ahead of it. Nobody leaves it before the thread has
//! told that all is done for that; and what it says of a lead's session or a member's mode before the files say so is written
//! again by the next daemon, or read from them. Lines of the event log alone are lost with a daemon that is killed just
//! then. Later than those jobs it must not be: an agent is known before it runs, and an end before anybody is told of it.

use super::FileJob;
use crate::roster::Roster;
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// The newest roster that waits.
type Newest = Arc<Mutex<Option<Roster>>>;

/// A place in the queue.
#[derive(Debug)]
enum Place {
    Job(Box<FileJob>),
    /// Of the newest roster.
    Roster,
}

/// Gives jobs to the thread: those of one event at once, so that it is woken once.
#[derive(Debug)]
pub(crate) struct Jobs {
    given: Vec<Place>,
    places: Sender<Vec<Place>>,
    newest: Newest,
}

/// Takes them; ends when nobody can give any more and all are taken.
#[derive(Debug)]
pub(super) struct Queue {
    places: Receiver<Vec<Place>>,
    taken: VecDeque<Place>,
    newest: Newest,
    /// Looked at, and not taken.
    next: Option<FileJob>,
}

pub(super) fn queue() -> (Jobs, Queue) {
    let (sender, receiver) = channel();
    let newest = Newest::default();
    let jobs = Jobs { given: Vec::new(), places: sender, newest: newest.clone() };
    (jobs, Queue { places: receiver, taken: VecDeque::new(), newest, next: None })
}

impl Jobs {
    /// Behind those that wait, with the next [`Jobs::go`].
    pub(crate) fn give(&mut self, job: FileJob) {
        let place = match job {
            FileJob::Roster(roster) => match replace(&self.newest, Some(roster)) {
                Some(_) => return,
                None => Place::Roster,
            },
            job => Place::Job(Box::new(job)),
        };
        self.given.push(place);
    }

    /// Where the thread has ended they go nowhere.
    pub(crate) fn go(&mut self) {
        if !self.given.is_empty() {
            self.places.send(std::mem::take(&mut self.given)).ok();
        }
    }
}

impl Iterator for Queue {
    type Item = FileJob;

    fn next(&mut self) -> Option<FileJob> {
        if let Some(job) = self.next.take() {
            return Some(job);
        }
        while self.taken.is_empty() {
            self.taken.extend(self.places.recv().ok()?);
        }
        let place = self.taken.pop_front()?;
        self.job_at(place)
    }
}

impl Queue {
    /// The next one, if one waits and is wanted.
    pub(super) fn next_if(&mut self, is_wanted: impl FnOnce(&FileJob) -> bool) -> Option<FileJob> {
        if self.next.is_none() {
            while let Ok(given) = self.places.try_recv() {
                self.taken.extend(given);
            }
            let place = self.taken.pop_front()?;
            self.next = self.job_at(place);
        }
        self.next.take_if(|job| is_wanted(job))
    }

    fn job_at(&self, place: Place) -> Option<FileJob> {
        match place {
            Place::Job(job) => Some(*job),
            Place::Roster => replace(&self.newest, None).map(FileJob::Roster),
        }
    }
}

fn replace(newest: &Newest, roster: Option<Roster>) -> Option<Roster> {
    std::mem::replace(&mut *newest.lock().unwrap_or_else(PoisonError::into_inner), roster)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(version: u32) -> FileJob {
        FileJob::Roster(Roster { version, ..Roster::default() })
    }

    /// What comes out, a roster by its version.
    fn taken(queue: Queue) -> Vec<String> {
        let word = |job| match job {
            FileJob::Roster(roster) => roster.version.to_string(),
            job => format!("{job:?}"),
        };
        queue.map(word).collect()
    }

    #[test]
    fn of_rosters_that_wait_the_newest_is_taken_in_the_place_of_the_oldest() {
        let (mut jobs, mut queue) = queue();
        for job in [roster(1), FileJob::Probe, roster(2), FileJob::Sessions, roster(3)] {
            jobs.give(job);
        }
        jobs.go();
        assert!(matches!(queue.next(), Some(FileJob::Roster(Roster { version: 3, .. }))));
        // What comes after it was taken has a place of its own.
        jobs.give(roster(4));
        jobs.go();
        drop(jobs);
        assert_eq!(taken(queue), ["Probe", "Sessions", "4"]);
    }

    #[test]
    fn what_waits_and_is_not_wanted_stays_the_next_and_nothing_is_waited_for() {
        let (mut jobs, mut queue) = queue();
        assert!(queue.next_if(|_| true).is_none());
        jobs.give(FileJob::Probe);
        jobs.give(roster(1));
        jobs.go();
        assert!(queue.next_if(|job| matches!(job, FileJob::Sessions)).is_none());
        jobs.give(roster(2));
        jobs.go();
        assert!(matches!(queue.next_if(|job| matches!(job, FileJob::Probe)), Some(FileJob::Probe)));
        assert!(matches!(queue.next_if(|_| true), Some(FileJob::Roster(Roster { version: 2, .. }))));
        jobs.give(FileJob::Probe);
        jobs.go();
        assert!(queue.next_if(|_| false).is_none());
        drop(jobs);
        assert_eq!(taken(queue), ["Probe"]);
    }
}
