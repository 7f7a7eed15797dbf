//! A files thread runs the file jobs of one lane, in order. A lane is the queue of one team, or of
//! the daemon's own files. With these threads, the event loop never waits for a disk or a file
//! lock, and teams do not wait for each other.
//!
//! No other thread of the daemon changes the files of a team. Each job contains all data that it
//! needs. Its result is sent to the event loop as an event.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::queue_and_batch_of_file_job::{Lane, collect_batch};
use crate::io::files::changes_since_last_rescan::RescanCache;
use crate::io::files::file_job_queues::{JobReceiver, JobSender};
use crate::io::files::record_writer::RecordWriter;
use crate::io::files::root_and_saves_shared_by_threads::{SharedThreadState, lock};
use crate::io::files::scan_inboxes_and_restore_messages::InboxScanner;
use crate::io::files::unlogged_events::UnloggedEvents;
use crate::io::process_start_error::thread_error;
use protocol::control_socket::LeadProcess;
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use store::{BaseVersion, Error, Root, StateDir, Team};
use tokio::sync::mpsc::UnboundedSender;

/// The state of a files thread.
pub(super) struct FilesThread {
    pub(super) shared: Arc<SharedThreadState>,
    pub(super) root: Root,
    /// How many times the daemon had opened the root directory again when this thread got its
    /// `root`. If `shared` has a higher number, the `root` of this thread is outdated.
    pub(super) root_generation: u64,
    pub(super) state: Arc<StateDir>,
    pub(super) rescan_cache: RescanCache,
    pub(super) inboxes: InboxScanner,
    /// Open teams. They are kept because a handle caches its team's tasks.
    pub(super) teams: BTreeMap<TeamName, Team>,
    /// For each team, the version of config.json from which the daemon has last written a backup.
    /// As long as config.json is unchanged, no new backup is needed.
    pub(super) config_backups: BTreeMap<TeamName, BaseVersion>,
    /// Recently deregistered members, with the time of their spawn in milliseconds since the epoch.
    pub(super) deregistered: VecDeque<(TeamName, MemberName, u64)>,
    /// The environment files that the last written roster names. `None` if no roster was written
    /// yet, or if an unused file could not be removed. The next write of the roster then looks for
    /// unused files.
    pub(super) environments: Option<BTreeSet<String>>,
    /// The content of leads.json. `None` if this daemon has not written the file yet.
    pub(super) leads: Option<Vec<LeadProcess>>,
    /// The records to which this thread has appended.
    pub(super) records: BTreeMap<TeamName, RecordWriter>,
    pub(super) unlogged_events: UnloggedEvents,
    pub(super) events: UnboundedSender<CoreEvent>,
}

/// Starts the thread for the daemon's own files, and returns the sender of jobs. The sender starts
/// the thread of a team when the team has its first job.
///
/// `logged_counts` says how many entries of each inbox the event log has already.
pub(crate) fn start(
    root: Root,
    state: StateDir,
    logged_counts: BTreeMap<(TeamName, MemberName), usize>,
    events: UnboundedSender<CoreEvent>,
) -> Result<JobSender, ErrorReport> {
    start_lanes(Arc::new(SharedThreadState::new(root, logged_counts)), Arc::new(state), events)
}

pub(super) fn start_lanes(
    shared: Arc<SharedThreadState>,
    state: Arc<StateDir>,
    events: UnboundedSender<CoreEvent>,
) -> Result<JobSender, ErrorReport> {
    let for_lanes = Arc::clone(&shared);
    let start_lane = move |lane: Lane, queue, predecessor: Option<std::thread::JoinHandle<()>>| {
        let (shared, state, events) = (Arc::clone(&for_lanes), Arc::clone(&state), events.clone());
        let run = move || {
            predecessor.into_iter().for_each(|thread| drop(thread.join()));
            FilesThread::new(shared, state, &lane, events).run(queue);
        };
        std::thread::Builder::new().name("files".into()).spawn(run)
    };
    let mut jobs = JobSender::new(shared, start_lane);
    jobs.start_daemon_lane().map_err(|error| thread_error(&error))?;
    Ok(jobs)
}

impl FilesThread {
    pub(super) fn new(
        shared: Arc<SharedThreadState>,
        state: Arc<StateDir>,
        lane: &Lane,
        events: UnboundedSender<CoreEvent>,
    ) -> FilesThread {
        let logged_counts = match lane {
            Lane::Team(team) => shared.take_logged_counts(team),
            Lane::Daemon => BTreeMap::new(),
        };
        let (root, root_generation) = {
            let current = lock(&shared.root);
            (current.root.clone(), current.generation)
        };
        FilesThread {
            shared,
            root,
            root_generation,
            state,
            rescan_cache: RescanCache::default(),
            inboxes: InboxScanner::new(logged_counts),
            teams: BTreeMap::new(),
            config_backups: BTreeMap::new(),
            deregistered: VecDeque::new(),
            environments: None,
            leads: None,
            records: BTreeMap::new(),
            unlogged_events: UnloggedEvents::default(),
            events,
        }
    }

    pub(super) fn run(&mut self, mut queue: JobReceiver) {
        while let Some(job) = queue.next() {
            failpoint::hit("files.job");
            if job.uses_root() {
                self.check_root(&job);
            }
            let batch = collect_batch(job, |is_wanted| queue.next_if(is_wanted));
            queue.wait_for_saves();
            self.run_member_batch(batch).into_iter().for_each(|result| self.report(result));
        }
    }

    /// Sends a result to the event loop. If the loop has ended, the result is dropped.
    pub(super) fn report(&self, result: FileResult) {
        failpoint::hit("files.done");
        self.events.send(CoreEvent::FileJobDone(result)).ok();
    }

    /// Runs a job whose result is not reported to the event loop. A failure is only logged, as
    /// "cannot `action`".
    pub(super) fn run_unanswered(
        &mut self,
        action: &str,
        job: impl FnOnce(&mut FilesThread) -> Result<(), Error>,
    ) -> Option<FileResult> {
        let result = job(self);
        self.log_error(action, result);
        None
    }

    /// Returns the handle of a team. If another program has replaced the team's directories, opens
    /// the new directories and forgets the inbox scans of the old ones.
    ///
    /// # Errors
    ///
    /// `NoSuchTeam` if another program has removed the team's directory.
    pub(super) fn open_team(&mut self, name: &TeamName) -> Result<Team, Error> {
        if let Some(team) = self.teams.get(name).filter(|team| team.is_current()) {
            return Ok(team.clone());
        }
        if self.teams.remove(name).is_some() {
            self.inboxes.forget_team(name);
        }
        let team = self.root.team(name)?;
        self.teams.insert(name.clone(), team.clone());
        Ok(team)
    }

    /// Logs an error as "cannot `action`". Returns the value of a success.
    pub(super) fn log_error<T>(&self, action: &str, result: Result<T, Error>) -> Option<T> {
        result.inspect_err(|error| tracing::warn!("cannot {action}: {error}")).ok()
    }
}
