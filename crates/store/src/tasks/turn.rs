//! Our own queue for a task list: flock on `.lock`, which other tools take too. It excludes nobody who takes
//! the directory lock alone, so it is no substitute for that; always this one first.

use super::LOCK;
use crate::directory::Directory;
use crate::error::Error;
use crate::lock::Flock;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::fs::{File, TryLockError};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(12);
/// What a thread needs that makes one system call.
const STACK: usize = 64 << 10;

/// A turn at the task list; ends when dropped.
#[derive(Debug)]
pub(super) struct Turn<'d> {
    dir: &'d Directory,
    _lock: Flock,
}

impl<'d> Turn<'d> {
    /// Waits for a turn, up to twelve seconds. The kernel hands it on the moment it is free.
    pub(super) fn take(dir: &'d Directory) -> Result<Turn<'d>, Error> {
        let lock = match Flock::try_on(open(dir)?) {
            Ok(lock) => lock,
            Err((file, TryLockError::WouldBlock)) => queued(dir, file)?,
            Err((_, TryLockError::Error(cause))) => return Err(Error::io("lock", &dir.join(LOCK), cause)),
        };
        Ok(Turn { dir, _lock: lock })
    }

    /// The list's directory.
    pub(super) fn dir(&self) -> &'d Directory {
        self.dir
    }
}

/// Waits in a thread of its own: a wait for flock has no deadline. After ours the thread waits on, finds nobody
/// to hand the lock to, and so lets it go.
fn queued(dir: &Directory, file: File) -> Result<Flock, Error> {
    let (tell, told) = channel();
    let wait = move || drop(tell.send(Flock::wait_for(file)));
    let waiting = Builder::new().name("turn".to_owned()).stack_size(STACK).spawn(wait);
    drop(waiting.map_err(|cause| Error::io("wait for", &dir.join(LOCK), cause))?);
    match told.recv_timeout(PATIENCE) {
        Ok(got) => got.map_err(|cause| Error::io("lock", &dir.join(LOCK), cause)),
        Err(_) => {
            let why = "another program holds it (flock)".to_owned();
            Err(Error::Locked { path: dir.join(LOCK), why })
        }
    }
}

fn open(dir: &Directory) -> Result<File, Error> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = openat(dir, LOCK, flags, Mode::S_IRUSR | Mode::S_IWUSR);
    Ok(File::from(fd.map_err(Error::at("open", &dir.join(LOCK)))?))
}
