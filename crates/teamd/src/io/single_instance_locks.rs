//! Ensures with two locks that each root has at most one daemon.
//!
//! The daemon holds a lock on a file in its state directory and a lock on a directory of the root.
//! The kernel releases both locks when the daemon exits, even if the daemon is killed.

use protocol::daemon_lock_file::LockHolder;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rustix::event::{Timespec, poll};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::Root;

/// The time between two checks of a lock, a pid or a socket.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long to wait for a new lock holder to write its pid into the lock file, as a number of
/// [`POLL_INTERVAL`]s. On a busy machine this can take more than a second.
const HOLDER_PID_POLLS: u32 = 500;

/// How long to wait until the locks of a killed daemon are released, as a number of
/// [`POLL_INTERVAL`]s.
///
/// A killed daemon keeps its locks for a moment, because the kernel closes its file descriptors one
/// after the other. A process that the daemon had just forked also keeps copies of the descriptors
/// until it calls `exec`.
const DEAD_HOLDER_POLLS: u32 = 200;

/// How long to wait for the exit of a daemon whose socket accepts connections, as a number of
/// [`POLL_INTERVAL`]s.
const SERVING_HOLDER_POLLS: u32 = 20;

/// The lock file of the running daemon, which holds the lock until it exits.
///
/// The lock file is never deleted. Otherwise another daemon could create a new file at the same
/// path and lock it, while the first daemon still holds the lock on the deleted file.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    path: PathBuf,
    file: File,
}

impl InstanceLock {
    /// Takes the lock on the file `path`. If another daemon holds the lock and is about to exit,
    /// waits until it has exited. Then writes this daemon's pid and the path `socket` of its
    /// control socket into the file.
    ///
    /// # Errors
    ///
    /// `NoDaemon` (exit code 69) if another daemon holds the lock and does not exit; the message
    /// has its pid. `Io` if the file cannot be opened, locked or written.
    pub(crate) fn acquire(path: &Path, root: &Path, socket: &Path) -> Result<InstanceLock, ErrorReport> {
        let to_error = |verb: &str, error: &std::io::Error| ErrorReport::from_io(verb, path, error);
        let open_result =
            File::options().create(true).truncate(false).read(true).write(true).mode(0o600).open(path);
        let mut file = open_result.map_err(|error| to_error("open", &error))?;
        let mut lock_result = file.try_lock();
        if matches!(lock_result, Err(TryLockError::WouldBlock))
            && has_holder_exited(read_holder_pid(&mut file), socket)
        {
            lock_result = file.try_lock();
        }
        match lock_result {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(already_running_error(&mut file, root, socket)),
            Err(TryLockError::Error(error)) => return Err(to_error("lock", &error)),
        }
        failpoint::hit("instance.locked");
        let lock = InstanceLock { path: path.to_owned(), file };
        lock.write_socket_path(socket)?;
        Ok(lock)
    }

    /// Writes the daemon's pid and the path of its control socket into the file. Clients read this
    /// path if they find no socket at the usual place.
    pub(crate) fn write_socket_path(&self, socket: &Path) -> Result<(), ErrorReport> {
        let mut text = LockHolder { pid: std::process::id(), socket: socket.to_owned() }.to_bytes();
        let length = text.len();
        // A client may read the file at any time, and the disk may be full. So the old text is
        // never removed first. The new text, padded with zero bytes to the old length, overwrites
        // the old text. Then the file is truncated to the length of the new text.
        let old_length = self.file.metadata().map_or(0, |metadata| metadata.len());
        text.resize(length.max(usize::try_from(old_length).unwrap_or(0)), 0);
        let written = self.file.write_all_at(&text, 0).and_then(|()| self.file.set_len(length as u64));
        written.map_err(|error| ErrorReport::from_io("write", &self.path, &error))
    }

    /// The path of the socket that a running daemon binds if its own socket was removed and cannot
    /// be bound again.
    pub(crate) fn fallback_socket(&self) -> PathBuf {
        self.path.with_file_name("control.sock")
    }
}

/// Reads the pid of the daemon that holds the lock from the lock file. A daemon writes its pid
/// shortly after it has taken the lock; until then the file has no pid, or the pid of an earlier
/// daemon. So this function waits until the file has the pid of a running process.
///
/// If `socket` accepts connections, the daemon has written its pid, and this function returns the
/// pid without a check of the process. A check would fail for a daemon in another pid namespace.
fn wait_for_holder_pid(file: &mut File, socket: &Path) -> Option<u32> {
    let is_running = |pid: &u32| platform::system().open_process(*pid).is_ok_and(|process| process.is_some());
    for _ in 0..HOLDER_PID_POLLS {
        let is_serving = UnixStream::connect(socket).is_ok();
        match read_holder_pid(file) {
            Some(pid) if is_serving || is_running(&pid) => return Some(pid),
            _ => wait_briefly(),
        }
    }
    read_holder_pid(file)
}

fn wait_briefly() {
    poll(&mut [], Timespec::try_from(POLL_INTERVAL).ok().as_ref()).ok();
}

/// Reads the pid in the lock file. `None` if the file has none.
fn read_holder_pid(file: &mut File) -> Option<u32> {
    let mut bytes = Vec::new();
    file.rewind().and_then(|()| file.read_to_end(&mut bytes)).ok()?;
    Some(LockHolder::parse(&bytes)?.pid)
}

/// Waits for the daemon that holds the lock to exit. Returns whether it has exited. `pid` is the
/// pid of that daemon, and `socket` its control socket.
///
/// If the socket accepts connections, waits up to 200 ms: the other daemon may just have been
/// killed, and the socket of a killed daemon works for a moment longer. If the socket accepts no
/// connection, the other daemon is starting or exiting. This function then waits up to 2 s, or
/// until the socket accepts a connection: the other daemon was starting.
///
/// The waits are short because a user may type `teamctl down` during a wait. This process would
/// then become the daemon against the will of the user.
fn has_holder_exited(pid: Option<u32>, socket: &Path) -> bool {
    let Some(pid) = pid else { return false };
    let process = match platform::system().open_process(pid) {
        Ok(Some(process)) => process,
        Ok(None) => return true,
        Err(_) => return false,
    };
    let exits_within =
        |intervals| process.exits_within(POLL_INTERVAL * intervals).is_ok_and(|has_exited| has_exited);
    let is_serving = || UnixStream::connect(socket).is_ok();
    if is_serving() {
        return exits_within(SERVING_HOLDER_POLLS);
    }
    (0..DEAD_HOLDER_POLLS)
        .find_map(|_| exits_within(1).then_some(true).or_else(|| is_serving().then_some(false)))
        .unwrap_or(false)
}

/// Takes the lock on the root's directory `teams`. The lock file in the state directory is not
/// enough: another daemon may use the same root with another state directory.
///
/// The lock belongs to the open directory and not to its path. So a daemon whose root was moved
/// away does not block a daemon at the root's path.
///
/// # Errors
///
/// `NoDaemon` (exit code 69) if another daemon keeps the lock.
pub(crate) fn lock_root(root: &Root) -> Result<(), ErrorReport> {
    for _ in 0..DEAD_HOLDER_POLLS {
        if root.try_lock().map_err(ErrorReport::from)? {
            return Ok(());
        }
        wait_briefly();
    }
    let message =
        format!("cannot supervise {}: a teamd does already, from other directories", root.path().display());
    let help = "is it one with another XDG_STATE_HOME or XDG_RUNTIME_DIR? find it with: pgrep -a teamd";
    Err(ErrorReport::new(ErrorKind::NoDaemon, message).with_help(help))
}

fn already_running_error(file: &mut File, root: &Path, socket: &Path) -> ErrorReport {
    let pid = wait_for_holder_pid(file, socket).map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
    let message = format!("cannot supervise {}: a teamd does already, pid {pid}", root.display());
    ErrorReport::new(ErrorKind::NoDaemon, message).with_help("use it, or end it with: teamctl down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags};
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux shows the files that are open")]
    fn the_error_names_the_lock_holder_even_if_its_pid_is_written_late() {
        let directory = tempfile::tempdir().unwrap();
        let (path, socket) = (directory.path().join("teamd.lock"), directory.path().join("s"));
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let mut first = File::create(&path).unwrap();
        first.lock().unwrap();
        for before in [String::new(), dead.id().to_string()] {
            first.set_len(0).and_then(|()| first.rewind()).unwrap();
            first.write_all(before.as_bytes()).unwrap();
            let error = std::thread::scope(|scope| {
                let second =
                    scope.spawn(|| InstanceLock::acquire(&path, directory.path(), &socket).unwrap_err());
                while !second.is_finished() && !opened_twice(&path) {
                    std::thread::yield_now();
                }
                first.set_len(0).and_then(|()| first.rewind()).unwrap();
                first.write_all(std::process::id().to_string().as_bytes()).unwrap();
                second.join().unwrap()
            });
            let own_pid = std::process::id();
            assert_eq!(error.kind, ErrorKind::NoDaemon);
            assert!(error.message.ends_with(&format!(", pid {own_pid}")), "{}", error.message);
        }
    }

    /// Whether this process has opened the file at least twice.
    fn opened_twice(path: &Path) -> bool {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path)).count() > 1
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux shows whether a thread sleeps")]
    fn the_wait_for_a_lock_holder_ends_when_its_socket_accepts_connections() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("s");
        let mut holder = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = Some(holder.id());
        std::thread::scope(|scope| {
            let waiting = spawn_until_asleep(scope, || has_holder_exited(pid, &socket));
            let listener = UnixListener::bind(&socket).unwrap();
            let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&timeout));
            assert_eq!(ready, Ok(1), "the waiting thread connects to the socket");
            assert!(!waiting.join().unwrap());
        });
        holder.kill().and_then(|()| holder.wait()).unwrap();
        assert!(has_holder_exited(pid, &socket));
    }

    /// Runs `action` on a new thread, and waits until that thread sleeps.
    fn spawn_until_asleep<'a, T: Send + 'a>(
        scope: &'a std::thread::Scope<'a, '_>,
        action: impl FnOnce() -> T + Send + 'a,
    ) -> std::thread::ScopedJoinHandle<'a, T> {
        let (sender, receiver) = std::sync::mpsc::channel();
        let handle = scope.spawn(move || {
            sender.send(std::fs::read_link("/proc/thread-self").unwrap()).unwrap();
            action()
        });
        let stat = Path::new("/proc").join(receiver.recv().unwrap()).join("stat");
        // The only reason for this thread to sleep is a wait in `action`.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") S ")) {
            std::thread::yield_now();
        }
        handle
    }

    #[test]
    #[cfg_attr(not(target_os = "linux"), ignore = "only Linux shows whether a thread sleeps")]
    fn a_daemon_waits_for_the_lock_on_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let open =
            || Root::open(&directory.path().join("root"), directory.path(), store::Durability::Process);
        let (first, second) = (open().unwrap(), open().unwrap());
        lock_root(&first).unwrap();
        std::thread::scope(|scope| {
            let waiting = spawn_until_asleep(scope, move || lock_root(&second));
            first.unlock().unwrap();
            waiting.join().unwrap().unwrap();
        });
    }
}
