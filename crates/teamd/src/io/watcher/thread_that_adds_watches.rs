//! The watcher thread: adds and removes watches for the event loop.
//!
//! Adding a watch blocks until all queued file events are delivered, which takes long after many
//! changes. This thread waits for that, so the event loop need not.

use crate::core::core_event::CoreEvent;
use crate::core::jobs::file_watcher_command::WatcherCommand;
use crate::io::process_start_error::thread_error;
use crate::io::watcher::barrier_files::Barriers;
use crate::io::watcher::file_watcher::{FileWatcher, WatchSinks};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The state of the watcher thread.
#[derive(Debug)]
pub(crate) struct WatcherThread {
    root: PathBuf,
    barriers: Barriers,
    sinks: WatchSinks,
    /// `None` if the watcher could not be started.
    watcher: Option<FileWatcher>,
}

impl WatcherThread {
    pub(crate) fn new(root: PathBuf, barriers: Barriers, sinks: WatchSinks) -> WatcherThread {
        WatcherThread { root, barriers, sinks, watcher: None }
    }

    /// Starts the watcher thread and watches the root. Returns the queue of commands for the
    /// thread. The daemon does not wait for this thread when it exits.
    pub(crate) fn start(self) -> Result<Sender<WatcherCommand>, ErrorReport> {
        let (commands, queue) = channel();
        commands.send(WatcherCommand::WatchRoot).ok();
        let thread = std::thread::Builder::new().name("watcher".into()).spawn(move || self.run(&queue));
        thread.map(|_| commands).map_err(|error| thread_error(&error))
    }

    fn run(mut self, queue: &Receiver<WatcherCommand>) {
        for command in queue {
            failpoint::hit("watch.command");
            match command {
                WatcherCommand::WatchRoot => self.watch_root(),
                WatcherCommand::WatchTeam(team) => self.watch_team(&team),
                WatcherCommand::UnwatchTeam(team) => {
                    self.watcher.iter_mut().for_each(|watcher| watcher.unwatch_team(&team));
                }
                WatcherCommand::CreateBarrier(barrier) => self.create_barrier(barrier),
                WatcherCommand::ConfirmWatches(purpose) => self.send(CoreEvent::WatchesAdded(purpose)),
            }
        }
    }

    /// Sends an event. If the event loop has ended, the event is dropped.
    fn send(&self, event: CoreEvent) {
        self.sinks.2.send(event).ok();
    }

    fn start_watcher(&self) -> notify::Result<FileWatcher> {
        FileWatcher::start(&self.root, self.barriers.clone(), self.sinks.clone())
    }

    /// Starts a new file watcher in place of the present one. The new watcher watches only the
    /// root's own directories. The event loop adds the teams afterwards.
    fn watch_root(&mut self) {
        let watcher = self.start_watcher();
        if let Err(error) = &watcher {
            tracing::warn!("cannot watch files; they are scanned every 2 s instead: {error}");
        }
        self.watcher = watcher.ok();
    }

    /// Watches a team. If there is no watcher, tries again to start one.
    fn watch_team(&mut self, team: &TeamName) {
        if self.watcher.is_none() {
            self.watcher = self.start_watcher().ok();
        }
        if !self.watcher.as_mut().is_some_and(|watcher| watcher.watch_team(team)) {
            self.send(CoreEvent::WatchFailed);
        }
    }

    fn create_barrier(&self, barrier: u64) {
        // The event of a barrier is recognized by the name of the file.
        if !platform::system().file_events_name_files() {
            return self.send(CoreEvent::BarrierFailed);
        }
        let result = self
            .watcher
            .as_ref()
            .map_or(Err("there is no watcher".to_owned()), |watcher| watcher.create_barrier(barrier));
        if let Err(error) = result {
            tracing::warn!("cannot create a barrier, so a claim reads all tasks: {error}");
            self.send(CoreEvent::BarrierFailed);
        }
    }
}
