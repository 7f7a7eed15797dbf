//! Finds the control socket of this root's daemon, even if the daemon was started from another
//! environment of the same user.
//!
//! The path of the socket depends on `$XDG_RUNTIME_DIR`, which cron, `su`, ssh commands and system
//! services set differently or not at all. If no daemon listens where this process expects the
//! socket, the daemon's lock file names the actual path.

use crate::connection::Connection;
use crate::daemon_call_error::Error;
use protocol::control_socket::{Call, Reply, Request, Response};
use protocol::daemon_lock_file::LockHolder;
use protocol::state_and_runtime_directories::Directories;
use protocol::state_file_names::DAEMON_LOCK;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait until a daemon reports which root it supervises. A daemon that was stopped with
/// SIGSTOP does not reply.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Finds the socket at which the daemon of `root` listens. `None` if no daemon is found, or if the
/// socket is `excluded_socket`, which the caller has already tried. `root` is a canonical path.
/// `directories` are teamd's directories for this root in the caller's environment.
///
/// The daemon's lock file names the socket. The lock file is first looked for in the state
/// directory of `directories`. If no daemon is found with that file, the open files of all
/// processes are searched, because a running daemon keeps its lock file open.
pub fn find_other_socket(root: &Path, directories: &Directories, excluded_socket: &Path) -> Option<PathBuf> {
    let lock_file = directories.state_dir.join(DAEMON_LOCK);
    let socket = named_socket(&lock_file, root);
    let socket = socket.or_else(|| socket_of_other_state_dir(&directories.state_dir, root));
    socket.filter(|socket| *socket != *excluded_socket)
}

/// Returns the socket that the lock file names, if the daemon of `root` listens there. `None` if
/// not: a daemon that has ended leaves its lock file behind.
///
/// If the pid of the process that listens is also in the lock file, this process is the daemon. The
/// pids differ if the daemon runs in another PID namespace. So in this case the process is asked
/// which root it supervises. A process that does not reply counts as the daemon of `root`, because
/// a daemon that was stopped with SIGSTOP does not reply.
fn named_socket(lock_file: &Path, root: &Path) -> Option<PathBuf> {
    let holder = LockHolder::parse(&std::fs::read(lock_file).ok()?)?;
    let is_listening = match Connection::open_without_blocking(&holder.socket) {
        Ok(connection) if connection.peer_pid() == Some(holder.pid) => true,
        Ok(connection) => supervised_root(connection).is_none_or(|other_root| *other_root == *root),
        Err(error) => matches!(error, Error::Unresponsive(_)),
    };
    is_listening.then_some(holder.socket)
}

/// The root that the daemon at the other end supervises. `None` if it does not say.
fn supervised_root(mut connection: Connection) -> Option<PathBuf> {
    connection.set_timeout(ANSWER_TIMEOUT).ok()?;
    match connection.call(&Call::new(Request::Status)).ok()? {
        Response::Done(reply) => match *reply {
            Reply::Status(status) => Some(status.daemon.root),
            _ => None,
        },
        Response::Failed(_) => None,
    }
}

/// Returns the control socket of a daemon of the same root that uses another state directory. To
/// find the daemon's lock file, this function searches the open files of all processes, because a
/// running daemon keeps its lock file open.
fn socket_of_other_state_dir(state_dir: &Path, root: &Path) -> Option<PathBuf> {
    let system = platform::system();
    let processes = system.processes().ok()?;
    let paths = processes.iter().flat_map(|process| system.open_files(process.pid));
    // The name of a state directory is a hash of the root, so the lock file is of this root.
    let is_of_root = |path: &PathBuf| path.parent().and_then(Path::file_name) == state_dir.file_name();
    let mut lock_files = paths.filter(|path| path.ends_with(DAEMON_LOCK) && is_of_root(path));
    lock_files.find_map(|lock_file| named_socket(&lock_file, root))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lock_file_names_the_socket_of_a_running_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let directories = Directories { runtime_dir: path("run"), state_dir: path("state") };
        for name in ["run", "state", "other"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let find = || find_other_socket(dir.path(), &directories, &directories.control_socket());
        let write_lock_file = |socket: PathBuf| {
            let text = LockHolder { pid: 1, socket }.to_bytes();
            std::fs::File::create(path("state/teamd.lock")).unwrap().write_all(&text).unwrap();
        };
        assert_eq!(find(), None);
        let listener = UnixListener::bind(path("other/s")).unwrap();
        write_lock_file(path("gone"));
        assert_eq!(find(), None);
        write_lock_file(path("other/s"));
        assert_eq!(find(), Some(path("other/s")));
        drop(listener);
        assert_eq!(find(), None, "no process listens on the socket");
    }

    #[test]
    fn open_lock_file_in_another_state_directory_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["a/hash", "b/hash", "b/other"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        let _listener = UnixListener::bind(path("s")).unwrap();
        let write_lock_file = |name: &str| {
            let mut file = std::fs::File::create(path(name)).unwrap();
            file.write_all(&LockHolder { pid: 1, socket: path("s") }.to_bytes()).unwrap();
            file
        };
        let directories = Directories { runtime_dir: path("run"), state_dir: path("a/hash") };
        let other_root_lock = write_lock_file("b/other/teamd.lock");
        let closed_lock = write_lock_file("b/hash/teamd.lock");
        drop(closed_lock);
        let find = || find_other_socket(dir.path(), &directories, &directories.control_socket());
        assert_eq!(find(), None);
        let open_lock = write_lock_file("b/hash/teamd.lock");
        assert_eq!(find(), Some(path("s")));
        assert_eq!(find_other_socket(dir.path(), &directories, &path("s")), None, "it was tried");
        drop((other_root_lock, open_lock));
    }
}
