//! Wakes a waiting test when anything below a directory is written, and after it was read.

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What was done to a file.
enum FileActivity {
    Read,
    Written,
}

/// Between two looks that nothing but reading was the cause of. A look reads files itself, and would be its own cause
/// for ever: tests that wait would take the machine from those that they wait for. Yet what is told by no writing, an
/// end of a process say, is often followed by somebody's reading.
const READ_BACKOFF: Duration = Duration::from_millis(20);

/// A watched directory tree.
pub(crate) struct TreeWatcher {
    changes: Mutex<Receiver<FileActivity>>,
    _watcher: notify::RecommendedWatcher,
}

impl TreeWatcher {
    pub(crate) fn new(directory: &Path) -> TreeWatcher {
        let (tell, changes) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event| tell.send(activity(&event)).unwrap_or_default())
                .expect("notify works here");
        watcher.watch(directory, RecursiveMode::Recursive).expect("the test environment can be watched");
        TreeWatcher { changes: Mutex::new(changes), _watcher: watcher }
    }

    /// True if something was done since the last call or until then.
    pub(crate) fn wait(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no waiter has panicked");
        let mut until = deadline.min(Instant::now() + POLL_INTERVAL);
        while let Ok(FileActivity::Read) =
            changes.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            until = until.min(Instant::now() + READ_BACKOFF);
        }
        // One look answers for all that came meanwhile.
        while changes.try_recv().is_ok() {}
        Instant::now() < deadline
    }

    /// Nothing is written until then.
    pub(crate) fn stays_quiet(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no waiter has panicked");
        while let Ok(done) = changes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let FileActivity::Written = done {
                return false;
            }
        }
        true
    }
}

fn activity(event: &notify::Result<notify::Event>) -> FileActivity {
    match event.as_ref().map(|event| event.kind) {
        Ok(EventKind::Access(AccessKind::Close(AccessMode::Write))) => FileActivity::Written,
        Ok(EventKind::Access(_)) => FileActivity::Read,
        _ => FileActivity::Written,
    }
}

/// What no file tells of, the end of a process or what the daemon alone knows, is looked at so often.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Longer than anything that works takes, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
