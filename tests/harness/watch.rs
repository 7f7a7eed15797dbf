//! Wakes a waiting test when anything below a directory is written, and after it was read.

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What was done to a file.
enum Done {
    Read,
    Written,
}

/// Between two looks that nothing but reading was the cause of. A look reads files itself, and would be its own cause
/// for ever: tests that wait would take the machine from those that they wait for. Yet what is told by no writing, an
/// end of a process say, is often followed by somebody's reading.
const AFTER_READING: Duration = Duration::from_millis(20);

/// A watched directory tree.
pub(crate) struct Watch {
    changes: Mutex<Receiver<Done>>,
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    pub(crate) fn of(directory: &Path) -> Watch {
        let (tell, changes) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event| tell.send(done(&event)).unwrap_or_default())
                .expect("notify works here");
        watcher.watch(directory, RecursiveMode::Recursive).expect("the house can be watched");
        Watch { changes: Mutex::new(changes), _watcher: watcher }
    }

    /// True if something was done since the last call or until then.
    pub(crate) fn next(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no waiter has panicked");
        let mut until = deadline.min(Instant::now() + BEAT);
        while let Ok(Done::Read) = changes.recv_timeout(until.saturating_duration_since(Instant::now())) {
            until = until.min(Instant::now() + AFTER_READING);
        }
        // One look answers for all that came meanwhile.
        while changes.try_recv().is_ok() {}
        Instant::now() < deadline
    }

    /// Nothing is written until then.
    pub(crate) fn is_still(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no waiter has panicked");
        while let Ok(done) = changes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let Done::Written = done {
                return false;
            }
        }
        true
    }
}

fn done(event: &notify::Result<notify::Event>) -> Done {
    match event.as_ref().map(|event| event.kind) {
        Ok(EventKind::Access(AccessKind::Close(AccessMode::Write))) => Done::Written,
        Ok(EventKind::Access(_)) => Done::Read,
        _ => Done::Written,
    }
}

/// What no file tells of, the end of a process or what the daemon alone knows, is looked at so often.
const BEAT: Duration = Duration::from_secs(1);

/// Longer than anything that works takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
