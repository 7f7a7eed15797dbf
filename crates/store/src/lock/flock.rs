//! The kernel's own lock (flock) on what is open. Dropped it is let go of by word: closing alone leaves it with whatever
//! was just forked, until that is another program.

use std::fs::{File, TryLockError};

/// Held for as long as it lives.
#[derive(Debug)]
pub(crate) struct Flock(File);

impl Flock {
    /// Takes it where nobody has it.
    pub(crate) fn try_lock(file: File) -> Result<Flock, (File, TryLockError)> {
        match file.try_lock() {
            Ok(()) => Ok(Flock(file)),
            Err(why) => Err((file, why)),
        }
    }

    /// Waits for it, however long.
    pub(crate) fn lock(file: File) -> std::io::Result<Flock> {
        loop {
            match file.lock() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                locked => return locked.map(|()| Flock(file)),
            }
        }
    }

    pub(crate) fn file(&self) -> &File {
        &self.0
    }
}

impl Drop for Flock {
    fn drop(&mut self) {
        // The close that follows does it too.
        self.0.unlock().ok();
    }
}
