//! Connects to the daemon of a root. The daemon's control socket can be at two places, which are
//! tried one after the other.

use crate::connection::Connection;
use crate::daemon_call_error::Error;
use protocol::daemon_lock_file::LockHolder;
use protocol::state_file_names::DAEMON_LOCK;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where a client looks for the daemon of a root: first at `socket`, then at the socket that the
/// lock file in `state_dir` names.
///
/// Usually both are the same socket, in the runtime directory. They differ if the daemon uses
/// another runtime directory than the client, or has moved its socket to the state directory. A
/// daemon that uses another state directory than the client is not found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonAddress {
    /// The control socket that is tried first.
    pub socket: PathBuf,
    /// The directory with the lock file.
    pub state_dir: PathBuf,
}

impl DaemonAddress {
    /// Connects to the daemon.
    ///
    /// # Errors
    ///
    /// The errors of [`Connection::open`] for `socket`.
    pub fn open(&self) -> Result<Connection, Error> {
        self.open_with(Connection::open)
    }

    /// Connects to the daemon. Tries the second socket of [`DaemonAddress`] only if no daemon
    /// listens at the first. If a socket's queue of pending connections is full, waits at most
    /// `timeout`.
    ///
    /// # Errors
    ///
    /// The errors of [`Connection::open_within`] for the first socket.
    pub(crate) fn open_within(&self, timeout: Duration) -> Result<Connection, Error> {
        self.open_with(|socket| Connection::open_within(socket, timeout))
    }

    fn open_with(&self, connect: impl Fn(&Path) -> Result<Connection, Error>) -> Result<Connection, Error> {
        match connect(&self.socket) {
            Err(error @ Error::NotRunning { .. }) => self.open_at_lock_file(connect).ok_or(error),
            connection => connection,
        }
    }

    /// Connects to the socket that the lock file names. The file may be left from a daemon that has
    /// ended. So the connection is used only if the listening process has the pid in the file.
    fn open_at_lock_file(&self, connect: impl Fn(&Path) -> Result<Connection, Error>) -> Option<Connection> {
        let lock_file = std::fs::read(self.state_dir.join(DAEMON_LOCK)).ok()?;
        let holder = LockHolder::parse(&lock_file)?;
        let connection = connect(&holder.socket).ok()?;
        (connection.peer_pid() == Some(holder.pid)).then_some(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    #[test]
    fn lock_file_is_read_only_if_no_daemon_listens_at_the_socket() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let address = DaemonAddress { socket: path("first"), state_dir: dir.path().to_owned() };
        let write_lock_file = |pid: u32| {
            let text = LockHolder { pid, socket: path("second") }.to_bytes();
            std::fs::File::create(path(DAEMON_LOCK)).unwrap().write_all(&text).unwrap();
        };
        assert!(address.open().is_err(), "there is no lock file");
        let second = UnixListener::bind(path("second")).unwrap();
        write_lock_file(std::process::id());
        address.open().unwrap();
        second.accept().unwrap();
        write_lock_file(std::process::id() + 1);
        assert!(address.open().is_err(), "another process listens there");
        let first = UnixListener::bind(path("first")).unwrap();
        write_lock_file(std::process::id());
        address.open().unwrap();
        first.accept().unwrap();
    }
}
