//! The files threads of a simulated daemon: one files thread, without a thread and a queue.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::file_results::FileResult;
use crate::core::jobs::queue_and_batch_of_file_job::Lane;
use crate::io::files::files_thread::FilesThread;
use crate::io::files::root_and_saves_shared_by_threads::SharedThreadState;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeMap;
use std::sync::Arc;
use store::{Root, StateDir};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Runs file jobs on real files, in the order of the calls.
pub(crate) struct SimulatedFilesThread {
    thread: FilesThread,
    events: UnboundedReceiver<CoreEvent>,
}

impl SimulatedFilesThread {
    /// `logged_counts` says how many entries of each inbox of `team` the event log has.
    pub(crate) fn new(
        root: Root,
        state: StateDir,
        team: TeamName,
        logged_counts: BTreeMap<(TeamName, MemberName), usize>,
    ) -> SimulatedFilesThread {
        let (sender, events) = unbounded_channel();
        let shared = Arc::new(SharedThreadState::new(root, logged_counts));
        let thread = FilesThread::new(shared, Arc::new(state), &Lane::Team(team), sender);
        SimulatedFilesThread { thread, events }
    }

    /// Runs a job. Returns its result, and the events of a rescan in a fixed order.
    pub(crate) fn run(&mut self, job: FileJob) -> (Option<FileResult>, Vec<CoreEvent>) {
        let result = self.thread.run_job(job);
        let mut events: Vec<CoreEvent> = std::iter::from_fn(|| self.events.try_recv().ok()).collect();
        events.sort_by_cached_key(|event| format!("{event:?}"));
        (result, events)
    }
}
