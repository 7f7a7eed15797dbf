//! Our own queue for a task list: flock on `.lock`, which other tools take too. It excludes nobody who takes
//! the directory lock alone, so it is no substitute for that; always this one first.

use super::LOCK;
use crate::directory::Directory;
use crate::error::Error;
use crate::pause::Pause;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg, OFlag, openat};
use nix::sys::stat::Mode;
use std::fs::File;
use std::time::Duration;

/// A turn at the task list; ends when dropped.
#[derive(Debug)]
pub(super) struct Turn<'d> {
    dir: &'d Directory,
    _lock: Flock<File>,
}

impl<'d> Turn<'d> {
    /// Waits for a turn, up to twelve seconds.
    pub(super) fn take(dir: &'d Directory) -> Result<Turn<'d>, Error> {
        let mut pause =
            Pause::new(Duration::from_secs(12), Duration::from_millis(1), Duration::from_millis(20));
        let mut file = open(dir)?;
        loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Turn { dir, _lock: lock }),
                Err((back, Errno::EWOULDBLOCK | Errno::EINTR)) => file = back,
                Err((_, errno)) => return Err(Error::io("lock", &dir.join(LOCK), errno)),
            }
            if !pause.wait() {
                let why = "another program holds it (flock)".to_owned();
                return Err(Error::Locked { path: dir.join(LOCK), why });
            }
        }
    }

    /// The list's directory.
    pub(super) fn dir(&self) -> &'d Directory {
        self.dir
    }
}

fn open(dir: &Directory) -> Result<File, Error> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = openat(dir, LOCK, flags, Mode::S_IRUSR | Mode::S_IWUSR);
    Ok(File::from(fd.map_err(Error::at("open", &dir.join(LOCK)))?))
}
