//! One that starts teamd at a time: of many, the first starts it and the others find it. Two at once would be in each
//! other's way: even a start that is only tried out has the daemon's lock for a moment, and one that comes too late waits
//! to see whether the daemon ends, and follows it if it does.
//!
//! The kernel frees the lock with the process, however that ends; the file stays.

use protocol::error::{ErrorKind, ErrorReport};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::mpsc::channel;
use std::time::Duration;
use store::StateDir;

/// Longer than some starts take, one after the other.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Waits for whoever else does; held for as long as what it gives lives.
pub fn acquire(state: &StateDir) -> Result<File, ErrorReport> {
    let path = state.path().join("up.lock");
    let open = File::options().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = open.map_err(|error| ErrorReport::from_io("open", &path, &error))?;
    let (give, given) = channel();
    // It ends with the process where that does not wait any longer.
    std::thread::spawn(move || give.send(file.lock().map(|()| file)));
    match given.recv_timeout(LOCK_TIMEOUT) {
        Ok(locked) => locked.map_err(|error| ErrorReport::from_io("lock", &path, &error)),
        Err(_) => {
            let message = "cannot start teamd: others have been starting it for 30 s";
            Err(ErrorReport::new(ErrorKind::NoDaemon, message)
                .with_help("see which: pgrep -af 'teamctl.* (up|run)'"))
        }
    }
}
