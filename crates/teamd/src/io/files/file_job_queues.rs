//! The queues of file jobs, called lanes: one lane for each team, and one for the daemon's own
//! files. The jobs of a lane run in order.
//!
//! A job that writes a roster or an environment is called a save. A job of a team waits for all
//! saves that were queued before it. So the roster on disk names an agent before the agent runs,
//! and contains an exit before the lead is notified of the exit.
//!
//! If several versions of the roster wait in the queue, only the newest is written, in the place of
//! the oldest. So the newest version may be written before jobs that were queued earlier. If the
//! daemon crashes in between, the next daemon repeats those jobs from the roster; only lines of the
//! event log can be lost.
//!
//! Invariant: a roster is never written later than its position in the queue;
//! `newest_waiting_roster_takes_the_place_of_the_oldest` checks it.

#[cfg(test)]
mod tests;

use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::queue_and_batch_of_file_job::Lane;
use crate::io::files::root_and_saves_shared_by_threads::SharedThreadState;
use protocol::team_and_member_names::TeamName;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// An entry of a queue.
#[derive(Debug)]
struct QueueEntry {
    job: QueuedJob,
    /// How many saves (jobs that write a roster or an environment) must be done before the job
    /// runs.
    after_saves: u64,
}

#[derive(Debug)]
enum QueuedJob {
    Job(Box<FileJob>),
    /// The position at which the newest roster is written.
    Roster,
}

/// A function that starts the thread of a lane. The third argument is the thread of an earlier team
/// of the same name, if there was one. The new thread first waits for its end.
type StartLane = Box<dyn Fn(Lane, JobReceiver, Option<JoinHandle<()>>) -> io::Result<JoinHandle<()>> + Send>;

/// The sending end of all queues. All jobs of one event are sent together, so that each lane wakes
/// up only once.
pub(crate) struct JobSender {
    shared: Arc<SharedThreadState>,
    pending: Vec<(Lane, QueueEntry)>,
    /// How many saves (jobs that write a roster or an environment) were queued so far.
    saves: u64,
    lanes: HashMap<Lane, RunningLane>,
    /// The threads of lanes that were closed and may still have a job.
    closing: HashMap<Lane, JoinHandle<()>>,
    /// Lanes that are closed after the next flush.
    to_close: Vec<Lane>,
    start_lane: StartLane,
}

/// A lane that takes jobs.
struct RunningLane {
    entries: Sender<Vec<QueueEntry>>,
    /// The thread that runs the jobs of this lane. It ends when `entries` is dropped and all jobs
    /// are done. `None` if the thread could not be started: the thread of the daemon's own files
    /// then runs the jobs.
    thread: Option<JoinHandle<()>>,
}

/// The receiving end of a queue: an iterator that ends when the sender is dropped and all jobs have
/// been taken.
pub(super) struct JobReceiver {
    shared: Arc<SharedThreadState>,
    entries: Receiver<Vec<QueueEntry>>,
    received: VecDeque<QueueEntry>,
    /// The next job, if `next_if` has read it and left it in the queue.
    next: Option<(FileJob, u64)>,
    /// How many saves must be done before all jobs that were taken so far may run.
    after_saves: u64,
}

impl fmt::Debug for JobSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobSender").field("lanes", &self.lanes.keys()).finish_non_exhaustive()
    }
}

impl JobSender {
    pub(super) fn new(
        shared: Arc<SharedThreadState>,
        start_lane: impl Fn(Lane, JobReceiver, Option<JoinHandle<()>>) -> io::Result<JoinHandle<()>>
        + Send
        + 'static,
    ) -> JobSender {
        JobSender {
            shared,
            pending: Vec::new(),
            saves: 0,
            lanes: HashMap::new(),
            closing: HashMap::new(),
            to_close: Vec::new(),
            start_lane: Box::new(start_lane),
        }
    }

    /// Starts the lane of the daemon's own files.
    ///
    /// # Errors
    ///
    /// If its thread cannot be started.
    pub(super) fn start_daemon_lane(&mut self) -> io::Result<()> {
        let lane = self.new_lane(Lane::Daemon)?;
        self.lanes.insert(Lane::Daemon, lane);
        Ok(())
    }

    /// Adds a job to the jobs that the next [`JobSender::flush`] sends.
    pub(crate) fn push(&mut self, job: FileJob) {
        let lane = job.lane();
        let is_save = job.is_save();
        let job = match job {
            FileJob::SaveRoster(roster) => match self.shared.swap_roster(Some(roster)) {
                Some(_) => return,
                None => QueuedJob::Roster,
            },
            job => QueuedJob::Job(Box::new(job)),
        };
        self.pending.push((lane, QueueEntry { job, after_saves: self.saves }));
        self.saves += u64::from(is_save);
    }

    /// Sends the jobs that were added by [`JobSender::push`] to their lanes. If the thread of a
    /// lane has panicked, its jobs are dropped.
    pub(crate) fn flush(&mut self) {
        let mut by_lane: Vec<(Lane, Vec<QueueEntry>)> = Vec::new();
        for (lane, entry) in std::mem::take(&mut self.pending) {
            match by_lane.iter_mut().find(|(other, _)| *other == lane) {
                Some((_, entries)) => entries.push(entry),
                None => by_lane.push((lane, vec![entry])),
            }
        }
        // The daemon's lane has the saves, and jobs of teams wait for saves. If the thread of a
        // team could not be started, the daemon's lane also runs the team's jobs. There, a job that
        // stood before its save would wait forever, so the daemon's lane gets the saves first.
        by_lane.sort_by_key(|(lane, _)| *lane != Lane::Daemon);
        for (lane, entries) in by_lane {
            self.lane(lane).inspect(|running| drop(running.entries.send(entries)));
        }
        std::mem::take(&mut self.to_close).into_iter().for_each(|lane| self.end_lane(lane));
    }

    /// Returns the lane `lane`. Starts its thread if there is none yet. If the thread cannot be
    /// started, the thread of the daemon's own files runs the jobs of this lane. Teams may then
    /// wait for each other, but no job is lost.
    fn lane(&mut self, lane: Lane) -> Option<&RunningLane> {
        if !self.lanes.contains_key(&lane) {
            match self.new_lane(lane.clone()) {
                Ok(running) => drop(self.lanes.insert(lane.clone(), running)),
                Err(error) => {
                    tracing::warn!("cannot start a thread for {lane:?}: {error}");
                    let entries = self.lanes.get(&Lane::Daemon)?.entries.clone();
                    self.lanes.insert(lane.clone(), RunningLane { entries, thread: None });
                }
            }
        }
        self.lanes.get(&lane)
    }

    fn new_lane(&mut self, lane: Lane) -> io::Result<RunningLane> {
        let (entries, receiver) = channel();
        let queue = JobReceiver::new(Arc::clone(&self.shared), receiver);
        let predecessor = self.closing.remove(&lane);
        Ok(RunningLane { entries, thread: Some((self.start_lane)(lane, queue, predecessor)?) })
    }

    /// Ends the lane of a team that does not exist any more, once the queued jobs of the lane are
    /// done. A later team of the same name gets a new lane.
    pub(crate) fn close_lane(&mut self, team: &TeamName) {
        self.to_close.push(Lane::Team(team.clone()));
    }

    fn end_lane(&mut self, lane: Lane) {
        self.closing.retain(|_, thread| !thread.is_finished());
        let thread = self.lanes.remove(&lane).and_then(|running| running.thread);
        thread.into_iter().for_each(|thread| drop(self.closing.insert(lane.clone(), thread)));
    }

    /// Waits until all jobs are done, and ends all lanes.
    pub(crate) fn finish(mut self) {
        self.flush();
        let closing = self.closing.into_values();
        let running = self.lanes.into_values().filter_map(|RunningLane { thread, .. }| thread);
        closing.chain(running).for_each(|thread| drop(thread.join()));
    }
}

impl JobReceiver {
    fn new(shared: Arc<SharedThreadState>, entries: Receiver<Vec<QueueEntry>>) -> JobReceiver {
        JobReceiver { shared, entries, received: VecDeque::new(), next: None, after_saves: 0 }
    }

    /// Takes the next job if one waits and `is_wanted` accepts it. Never blocks.
    pub(super) fn next_if(&mut self, is_wanted: impl FnOnce(&FileJob) -> bool) -> Option<FileJob> {
        if self.next.is_none() {
            while let Ok(entries) = self.entries.try_recv() {
                self.received.extend(entries);
            }
            let entry = self.received.pop_front()?;
            self.next = self.resolve(entry);
        }
        let (job, after_saves) = self.next.take_if(|(job, _)| is_wanted(job))?;
        self.after_saves = self.after_saves.max(after_saves);
        Some(job)
    }

    /// Waits until all saves that were queued before the taken jobs are done.
    pub(super) fn wait_for_saves(&self) {
        self.shared.wait_for_saves(self.after_saves);
    }

    /// Returns the job of an entry. For [`QueuedJob::Roster`], the job writes the newest roster.
    fn resolve(&self, QueueEntry { job, after_saves }: QueueEntry) -> Option<(FileJob, u64)> {
        let job = match job {
            QueuedJob::Job(job) => Some(*job),
            QueuedJob::Roster => self.shared.swap_roster(None).map(FileJob::SaveRoster),
        };
        Some((job?, after_saves))
    }
}

impl Iterator for JobReceiver {
    type Item = FileJob;

    fn next(&mut self) -> Option<FileJob> {
        let (job, after_saves) = match self.next.take() {
            Some(next) => next,
            None => {
                while self.received.is_empty() {
                    self.received.extend(self.entries.recv().ok()?);
                }
                let entry = self.received.pop_front()?;
                self.resolve(entry)?
            }
        };
        self.after_saves = self.after_saves.max(after_saves);
        Some(job)
    }
}
