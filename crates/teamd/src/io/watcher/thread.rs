//! What the watcher is asked, on a thread of its own: it answers once it has told of all that it has seen, and in a storm of
//! changes that takes as long as the storm. The loop waits for none of it.

use crate::core::event::CoreEvent;
use crate::core::jobs::watcher::WatchCommand;
use crate::io::threads::thread_error;
use crate::io::watcher::barrier::Barriers;
use crate::io::watcher::file_watcher::{FileWatcher, WatchSinks};
use protocol::error::ErrorReport;
use protocol::name::TeamName;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Who is asked: holds the watcher.
#[derive(Debug)]
pub(crate) struct WatcherThread {
    root: PathBuf,
    marks: Barriers,
    sinks: WatchSinks,
    /// None where none can be had.
    watch: Option<FileWatcher>,
}

impl WatcherThread {
    pub(crate) fn new(root: PathBuf, marks: Barriers, told: WatchSinks) -> WatcherThread {
        WatcherThread { root, marks, sinks: told, watch: None }
    }

    /// Starts the thread, with the root as the first that it is asked. Nobody waits for its end.
    pub(crate) fn start(self) -> Result<Sender<WatchCommand>, ErrorReport> {
        let (asks, asked) = channel();
        asks.send(WatchCommand::WatchRoot).ok();
        let thread = std::thread::Builder::new().name("watch".into()).spawn(move || self.run(&asked));
        thread.map(|_| asks).map_err(|error| thread_error(&error))
    }

    fn run(mut self, asked: &Receiver<WatchCommand>) {
        for ask in asked {
            failpoint::hit("watch.asked");
            match ask {
                WatchCommand::WatchRoot => self.watch_root(),
                WatchCommand::WatchTeam(team) => self.watch_team(&team),
                WatchCommand::UnwatchTeam(team) => {
                    self.watch.iter_mut().for_each(|watch| watch.unwatch_team(&team));
                }
                WatchCommand::CreateBarrier(mark) => self.create_barrier(mark),
                WatchCommand::ConfirmWatches { is_probe: probe } => {
                    self.send(CoreEvent::WatchesAdded { is_probe: probe });
                }
            }
        }
    }

    /// The loop may have ended: nobody is left to be told.
    fn send(&self, event: CoreEvent) {
        self.sinks.2.send(event).ok();
    }

    fn start_watcher(&self) -> notify::Result<FileWatcher> {
        FileWatcher::start(&self.root, self.marks.clone(), self.sinks.clone())
    }

    fn watch_root(&mut self) {
        let watch = self.start_watcher();
        if let Err(error) = &watch {
            tracing::warn!("cannot watch files, so they are looked at every 2 s: {error}");
        }
        self.watch = watch.ok();
    }

    /// A watcher that could not be had at the start may be had now.
    fn watch_team(&mut self, team: &TeamName) {
        if self.watch.is_none() {
            self.watch = self.start_watcher().ok();
        }
        if !self.watch.as_mut().is_some_and(|watch| watch.watch_team(team)) {
            self.send(CoreEvent::WatchFailed);
        }
    }

    fn create_barrier(&self, mark: u64) {
        let made = self
            .watch
            .as_ref()
            .map_or(Err("there is no watcher".to_owned()), |watch| watch.create_barrier(mark));
        if let Err(why) = made {
            tracing::warn!("cannot mark what has been written, so claims look at all tasks: {why}");
            self.send(CoreEvent::BarrierFailed);
        }
    }
}
