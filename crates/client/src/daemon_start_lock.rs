//! A lock that lets only one process start teamd at a time.
//!
//! The first process starts teamd. The others wait for the lock, and then find that teamd is
//! running. Each start first runs `teamd --check`, which takes the daemon's own lock for a moment.
//! Without the start lock, two processes could run this check at once, and one check would fail
//! because the daemon's lock is taken.
//!
//! The kernel releases the start lock when its holder exits. The lock file itself is kept.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::channel;
use std::time::Duration;
use store::StateDir;

/// Time to wait for the lock, long enough for several starts in sequence.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for the lock that lets only one process start teamd. Returns the locked file; dropping the
/// file releases the lock.
///
/// # Errors
///
/// `Io`, and `NoDaemon` if the lock was not free within 30 s.
pub fn acquire(state: &StateDir) -> Result<File, ErrorReport> {
    let path = state.path().join("daemon-start.lock");
    let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|error| ErrorReport::from_io("open", &path, &error))?;
    let (sender, receiver) = channel();
    // After a timeout, this thread stays blocked in `lock` until the process exits.
    std::thread::spawn(move || sender.send(file.lock().map(|()| file)));
    match receiver.recv_timeout(LOCK_TIMEOUT) {
        Ok(result) => result.map_err(|error| ErrorReport::from_io("lock", &path, &error)),
        Err(_) => {
            let message = "cannot start teamd: others have been starting it for 30 s";
            Err(ErrorReport::new(ErrorKind::NoDaemon, message)
                .with_help("see which: pgrep -af 'teamctl.* (up|run)'"))
        }
    }
}
