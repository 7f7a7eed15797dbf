//! Wakes a waiting test when a file in a directory tree is written, and a moment after one is
//! opened.

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecursiveMode, Watcher};
use std::path::Path;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What happened to a file.
enum FileActivity {
    /// The file was opened, or an access other than a write ended.
    Read,
    /// The file was created, written, renamed or deleted, or its attributes changed.
    Written,
}

/// Delay between a read and the next check of a waiting test.
///
/// A read can show a change that writes no file. For example, programs often read files after a
/// process has ended. But the check itself also reads files. Without a delay, each check would
/// cause the next one, and waiting tests would take the CPU time of the programs under test.
const READ_BACKOFF: Duration = Duration::from_millis(20);

/// A watched directory tree.
pub(crate) struct TreeWatcher {
    changes: Mutex<Receiver<FileActivity>>,
    _watcher: notify::RecommendedWatcher,
}

impl TreeWatcher {
    pub(crate) fn new(directory: &Path) -> TreeWatcher {
        let (sender, changes) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event| sender.send(file_activity(&event)).unwrap_or_default())
                .expect("inotify works");
        watcher.watch(directory, RecursiveMode::Recursive).expect("the test environment can be watched");
        TreeWatcher { changes: Mutex::new(changes), _watcher: watcher }
    }

    /// Waits until a file is written, for `READ_BACKOFF` after a file was read, or for
    /// `POLL_INTERVAL`. Returns at once if a file was written since the last call. Returns false if
    /// the deadline has passed.
    pub(crate) fn wait(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no other waiter has panicked");
        let mut wait_end = deadline.min(Instant::now() + POLL_INTERVAL);
        while let Ok(FileActivity::Read) =
            changes.recv_timeout(wait_end.saturating_duration_since(Instant::now()))
        {
            wait_end = wait_end.min(Instant::now() + READ_BACKOFF);
        }
        // One check covers all changes so far.
        while changes.try_recv().is_ok() {}
        Instant::now() < deadline
    }

    /// Waits until the deadline. Returns false as soon as a file is written.
    pub(crate) fn stays_quiet(&self, deadline: Instant) -> bool {
        let changes = self.changes.lock().expect("no other waiter has panicked");
        while let Ok(activity) = changes.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if let FileActivity::Written = activity {
                return false;
            }
        }
        true
    }
}

fn file_activity(event: &notify::Result<notify::Event>) -> FileActivity {
    match event.as_ref().map(|event| event.kind) {
        Ok(EventKind::Access(AccessKind::Close(AccessMode::Write))) => FileActivity::Written,
        Ok(EventKind::Access(_)) => FileActivity::Read,
        _ => FileActivity::Written,
    }
}

/// How often a waiting test checks its condition if no file changes. Some conditions depend on no
/// file, for example on the end of a process or on the state of the daemon.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long a test waits for a condition. On a busy machine, too, everything that works is faster.
/// A test that passes never waits so long.
pub const TIMEOUT: Duration = Duration::from_secs(120);
