//! Wakes a waiting test when anything below a directory is written.

use notify::{RecursiveMode, Watcher};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A watched directory tree.
pub(crate) struct Watch {
    changes: Mutex<Receiver<()>>,
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    pub(crate) fn of(directory: &Path) -> Watch {
        let (tell, changes) = channel();
        let mut watcher = notify::recommended_watcher(move |_| tell.send(()).unwrap_or_default())
            .expect("notify works here");
        watcher.watch(directory, RecursiveMode::Recursive).expect("the house can be watched");
        Watch { changes: Mutex::new(changes), _watcher: watcher }
    }

    /// True if something was written since the last call or until then.
    pub(crate) fn next(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no waiter has panicked");
        let woken = changes.recv_timeout(deadline.saturating_duration_since(Instant::now())).is_ok();
        // One look answers for all that came meanwhile.
        while changes.try_recv().is_ok() {}
        woken
    }
}

/// Longer than anything that works takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
