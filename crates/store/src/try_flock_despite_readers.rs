//! Takes the exclusive kernel lock (flock) of a file, although other processes briefly take shared
//! locks of the same file.
//!
//! The other processes are readers, which test whether any process holds the exclusive lock. For
//! this, a reader takes a shared lock and releases it at once. During this moment the exclusive
//! lock can't be taken, so the attempt must be repeated.

use crate::backoff::Backoff;
use crate::flock::Flock;
use std::fs::{File, TryLockError};
use std::time::Duration;

/// How long the lock is tried again while readers have it.
const READERS_TIMEOUT: Duration = Duration::from_secs(2);
/// The first and the longest wait between two attempts.
const WAITS: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(20)];

/// Takes the exclusive lock of a file. While readers have shared locks, tries again for up to two
/// seconds.
///
/// # Errors
///
/// `WouldBlock` at once if another process holds the exclusive lock, or after two seconds if
/// readers still have shared locks; the errors of the system.
pub fn try_lock_exclusive_despite_readers(mut file: File) -> Result<Flock, TryLockError> {
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
        let lock = try_lock_exclusive_despite_readers(open_file()).unwrap();
        assert!(matches!(try_lock_exclusive_despite_readers(open_file()), Err(TryLockError::WouldBlock)));
        drop(lock);
        let reader = open_file();
        reader.try_lock_shared().unwrap();
        // The reader keeps its lock for long enough that the first attempt below fails.
        let reader_thread = std::thread::spawn(move || {
            let reading_time = Duration::from_millis(200);
            let mut backoff = Backoff::new(reading_time, reading_time, reading_time);
            while backoff.wait() {}
            reader.unlock()
        });
        assert!(
            try_lock_exclusive_despite_readers(open_file()).is_ok(),
            "the lock is tried again until the reader is done"
        );
        reader_thread.join().unwrap().unwrap();
    }
}
