//! Takes the exclusive kernel lock (flock) of a file whose state other processes check.
//!
//! To find out whether a process holds the exclusive lock, a reader takes a shared lock for a
//! moment. A process that requests the exclusive lock at this moment fails, and must try again.

use super::flock::Flock;
use crate::backoff::Backoff;
use std::fs::{File, TryLockError};
use std::time::Duration;

/// How long the lock is tried again while readers have it.
const READERS_TIMEOUT: Duration = Duration::from_secs(2);
/// The first and the longest wait between two attempts.
const WAITS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(20)];

/// Takes the exclusive lock of a file.
///
/// # Errors
///
/// `WouldBlock` at once if another process holds the exclusive lock, and after two seconds if readers
/// kept the lock; the errors of the system.
pub fn lock_between_readers(mut file: File) -> Result<Flock, TryLockError> {
    let mut backoff = Backoff::new(READERS_TIMEOUT, WAITS[0], WAITS[1]);
    loop {
        file = match Flock::try_lock(file) {
            Ok(flock) => return Ok(flock),
            Err((taken, TryLockError::WouldBlock)) => taken,
            Err((_, error)) => return Err(error),
        };
        // This fails if a process holds the exclusive lock.
        file.try_lock_shared()?;
        file.unlock().map_err(TryLockError::Error)?;
        if !backoff.wait() {
            return Err(TryLockError::WouldBlock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exclusive_lock_is_an_error_at_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open_file = || File::open(file.path()).unwrap();
        let lock = lock_between_readers(open_file()).unwrap();
        assert!(matches!(lock_between_readers(open_file()), Err(TryLockError::WouldBlock)));
        drop(lock);
        let reader = open_file();
        reader.try_lock_shared().unwrap();
        let writer = std::thread::spawn({
            let file = open_file();
            move || lock_between_readers(file).map(|_| ())
        });
        reader.unlock().unwrap();
        writer.join().unwrap().unwrap();
    }
}
