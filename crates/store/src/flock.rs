//! The kernel's file lock (flock). Dropping a [`Flock`] releases the lock explicitly. If the file
//! were only closed, a forked child process would keep the lock until the child calls `exec`.

use std::fs::{File, TryLockError};

/// A held flock. Dropping it releases the lock.
#[derive(Debug)]
pub struct Flock(File);

impl Flock {
    /// Takes the flock if it is free. Does not wait.
    pub(crate) fn try_lock(file: File) -> Result<Flock, (File, TryLockError)> {
        match file.try_lock() {
            Ok(()) => Ok(Flock(file)),
            Err(error) => Err((file, error)),
        }
    }

    /// Takes the flock. Waits without a timeout.
    pub(crate) fn lock(file: File) -> std::io::Result<Flock> {
        loop {
            match file.lock() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                result => return result.map(|()| Flock(file)),
            }
        }
    }

    /// The locked file.
    pub fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Flock {
    fn drop(&mut self) {
        // Closing the file releases the flock too, so an error here does not matter.
        self.0.unlock().ok();
    }
}
