//! Our own queue for a task list: flock on `.lock`, which other tools take too. It excludes nobody who takes
//! the directory lock alone, so it is no substitute for that; always this one first.

use crate::dir_handle::DirHandle;
use crate::error::Error;
use crate::layout::LOCK_FILE;
use crate::lock::Flock;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::fs::{File, TryLockError};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

const QUEUE_TIMEOUT: Duration = Duration::from_secs(12);
/// What a thread needs that makes one system call.
const STACK_BYTES: usize = 64 << 10;

/// A turn at the task list; ends when dropped.
#[derive(Debug)]
pub(super) struct Ticket<'d> {
    dir: &'d DirHandle,
    _lock: Flock,
}

impl<'d> Ticket<'d> {
    /// Waits for a turn, up to twelve seconds. The kernel hands it on the moment it is free.
    pub(super) fn acquire(dir: &'d DirHandle) -> Result<Ticket<'d>, Error> {
        let lock = match Flock::try_lock(open_lock_file(dir)?) {
            Ok(lock) => lock,
            Err((file, TryLockError::WouldBlock)) => wait_in_queue(dir, file)?,
            Err((_, TryLockError::Error(cause))) => {
                return Err(Error::io("lock", &dir.join(LOCK_FILE), cause));
            }
        };
        Ok(Ticket { dir, _lock: lock })
    }

    /// The list's directory.
    pub(super) fn dir(&self) -> &'d DirHandle {
        self.dir
    }
}

/// Waits in a thread of its own: a wait for flock has no deadline. After ours the thread waits on, finds nobody
/// to hand the lock to, and so lets it go.
fn wait_in_queue(dir: &DirHandle, file: File) -> Result<Flock, Error> {
    let (tell, told) = channel();
    let wait = move || drop(tell.send(Flock::lock(file)));
    let waiting = Builder::new().name("turn".to_owned()).stack_size(STACK_BYTES).spawn(wait);
    drop(waiting.map_err(|cause| Error::io("wait for", &dir.join(LOCK_FILE), cause))?);
    match told.recv_timeout(QUEUE_TIMEOUT) {
        Ok(got) => got.map_err(|cause| Error::io("lock", &dir.join(LOCK_FILE), cause)),
        Err(_) => {
            let why = "another program holds it (flock)".to_owned();
            Err(Error::Locked { path: dir.join(LOCK_FILE), reason: why })
        }
    }
}

fn open_lock_file(dir: &DirHandle) -> Result<File, Error> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = openat(dir, LOCK_FILE, flags, Mode::S_IRUSR | Mode::S_IWUSR);
    Ok(File::from(fd.map_err(Error::from_errno("open", &dir.join(LOCK_FILE)))?))
}
