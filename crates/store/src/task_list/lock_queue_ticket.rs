//! The ticket of a task list: a flock on the file `.lock`, for which teamd's programs wait in a
//! queue. A task list also has a lock directory, `.lock.lock`. Some other programs take only the
//! flock, and some take only the lock directory. So teamd takes both to change the list: first the
//! ticket, then the lock directory.

use crate::directory_handle::DirHandle;
use crate::error::Error;
use crate::flock::Flock;
use crate::team_file_names::LOCK_FILE;
use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;
use std::fs::{File, TryLockError};
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::Duration;

const QUEUE_TIMEOUT: Duration = Duration::from_secs(12);
/// Stack size of a thread that makes one system call.
const STACK_BYTES: usize = 64 << 10;

/// A place at the head of the queue. Dropping it lets the next process change the list.
#[derive(Debug)]
pub(super) struct Ticket<'d> {
    dir: &'d DirHandle,
    _lock: Flock,
}

impl<'d> Ticket<'d> {
    /// Waits in the queue for up to twelve seconds.
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

    /// The directory of the task list.
    pub(super) fn dir(&self) -> &'d DirHandle {
        self.dir
    }
}

/// Waits for the flock in a separate thread, because flock has no timeout. The thread sends the
/// flock to this function through a channel. After the timeout, this function returns, but the
/// thread still waits. When the thread then gets the flock, no receiver is left, so the flock is
/// released at once.
fn wait_in_queue(dir: &DirHandle, file: File) -> Result<Flock, Error> {
    let (sender, receiver) = channel();
    let wait = move || drop(sender.send(Flock::lock(file)));
    let thread = Builder::new().name("ticket".to_owned()).stack_size(STACK_BYTES).spawn(wait);
    drop(thread.map_err(|cause| Error::io("wait for", &dir.join(LOCK_FILE), cause))?);
    match receiver.recv_timeout(QUEUE_TIMEOUT) {
        Ok(lock) => lock.map_err(|cause| Error::io("lock", &dir.join(LOCK_FILE), cause)),
        Err(_) => {
            let reason = "another program holds it (flock)".to_owned();
            Err(Error::Locked { path: dir.join(LOCK_FILE), reason })
        }
    }
}

fn open_lock_file(dir: &DirHandle) -> Result<File, Error> {
    let flags = OFlag::O_RDWR | OFlag::O_CREAT | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let fd = openat(dir, LOCK_FILE, flags, Mode::S_IRUSR | Mode::S_IWUSR);
    Ok(File::from(fd.map_err(Error::from_errno("open", &dir.join(LOCK_FILE)))?))
}
