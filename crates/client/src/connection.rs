//! A connection to the daemon's control socket.
//!
//! If the connection closes before the reply, the call fails at once with [`Error::Disconnected`].
//! The error does not say whether the daemon has carried out the call.
//!
//! A client sends nothing before it has checked that the process that serves the socket has the
//! client's own uid. So secrets in a call never reach another user.

use crate::daemon_call_error::Error;
use nix::errno::Errno;
use nix::sys::socket::{UnixAddr, connect};
use platform::unix_sockets_and_peers::unix_stream_socket;
use protocol::control_socket::framing::{self, LineAssembler};
use protocol::control_socket::{Call, Response};
use serde::{Serialize, de::DeserializeOwned};
use std::io::{BufRead, BufReader, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time to wait for a place in the socket's queue of pending connections. The queue is full
/// only if the daemon's process is stopped, or if very many clients connect at once.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// An open connection to the control socket.
#[derive(Debug)]
pub struct Connection {
    path: PathBuf,
    reader: BufReader<UnixStream>,
    assembler: LineAssembler,
}

impl Connection {
    /// Connects to the socket at `path`, and checks that the process that serves it has the same
    /// uid as this process. If the socket's queue of pending connections is full, waits at most
    /// five seconds.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], [`Error::Unresponsive`], [`Error::WrongUser`].
    pub fn open(path: &Path) -> Result<Connection, Error> {
        Connection::open_within(path, CONNECT_TIMEOUT)
    }

    /// Connects like [`Connection::open`], but does not wait if the socket's queue of pending
    /// connections is full. The queue fills if the daemon's process is stopped and accepts no
    /// connections.
    ///
    /// # Errors
    ///
    /// [`Error::Unresponsive`] if the queue is full; otherwise as for [`Connection::open`].
    pub fn open_without_blocking(path: &Path) -> Result<Connection, Error> {
        Connection::open_within(path, Duration::ZERO)
    }

    /// Connects like [`Connection::open`], but waits at most `timeout` if the socket's queue of
    /// pending connections is full.
    ///
    /// # Errors
    ///
    /// As for [`Connection::open`].
    pub fn open_within(path: &Path, timeout: Duration) -> Result<Connection, Error> {
        failpoint::hit("client.connect");
        let stream = connect_within(path, timeout).map_err(|errno| match errno {
            Errno::EAGAIN => Error::Unresponsive(path.to_owned()),
            errno => Error::NotRunning { path: path.to_owned(), source: errno.into() },
        })?;
        Connection::from_stream(path, stream)
    }

    fn from_stream(path: &Path, stream: UnixStream) -> Result<Connection, Error> {
        let not_running = |source| Error::NotRunning { path: path.to_owned(), source };
        let peer = platform::system().peer_of(stream.as_fd()).map_err(not_running)?;
        if peer.uid != nix::unistd::geteuid().as_raw() {
            return Err(Error::WrongUser { path: path.to_owned(), uid: peer.uid });
        }
        Ok(Connection {
            path: path.to_owned(),
            reader: BufReader::new(stream),
            assembler: LineAssembler::default(),
        })
    }

    /// Sends a call and waits for the reply. The daemon replies after it has carried out the call.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] as soon as the daemon dies; otherwise as for [`Connection::send`]
    /// and [`Connection::receive`].
    pub fn call(&mut self, call: &Call) -> Result<Response, Error> {
        failpoint::hit("client.send");
        self.send(call)?;
        failpoint::hit("client.sent");
        let response = self.receive();
        failpoint::hit("client.received");
        response
    }

    /// Sends one value, encoded as one or more lines of JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`], [`Error::Unresponsive`], [`Error::Frame`].
    pub fn send<T: Serialize>(&mut self, value: &T) -> Result<(), Error> {
        let lines = framing::encode(value)?;
        self.reader.get_mut().write_all(&lines).map_err(|error| self.io_error(&error))
    }

    /// Sends one value together with a file descriptor. The descriptor is attached to the value's
    /// first byte.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`], [`Error::Frame`].
    pub fn send_with_fd<T: Serialize>(&mut self, value: &T, descriptor: BorrowedFd<'_>) -> Result<(), Error> {
        use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
        let lines = framing::encode(value)?;
        let rights = [descriptor.as_raw_fd()];
        let sent_bytes = sendmsg::<()>(
            self.reader.get_ref().as_raw_fd(),
            &[IoSlice::new(&lines)],
            &[ControlMessage::ScmRights(&rights)],
            MsgFlags::empty(),
            None,
        )
        .map_err(|_| self.disconnect_error())?;
        self.reader.get_mut().write_all(&lines[sent_bytes..]).map_err(|_| self.disconnect_error())
    }

    /// Waits for one object and returns it.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`], [`Error::Unresponsive`], [`Error::Frame`].
    pub fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        loop {
            let mut line = String::new();
            let limit = framing::MAX_LINE_BYTES as u64;
            let byte_count = self
                .reader
                .by_ref()
                .take(limit)
                .read_line(&mut line)
                .map_err(|error| self.io_error(&error))?;
            if byte_count == 0 || !line.ends_with('\n') {
                return Err(self.disconnect_error());
            }
            if let Some(text) = self.assembler.push_line(line.trim_end_matches('\n'))? {
                return serde_json::from_str(&text).map_err(|error| Error::Frame(error.into()));
            }
        }
    }

    /// Whether received bytes are already buffered. poll(2) does not report them.
    pub fn has_buffered(&self) -> bool {
        !self.reader.buffer().is_empty()
    }

    /// Process id of the daemon at the other end, from the kernel. `None` if unknown.
    pub fn peer_pid(&self) -> Option<u32> {
        platform::system().peer_of(self.reader.get_ref().as_fd()).ok()?.pid
    }

    /// Sets a timeout for all later sends and receives. If the timeout passes, they fail with
    /// [`Error::Unresponsive`].
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] if the socket is closed.
    pub fn set_timeout(&self, timeout: Duration) -> Result<(), Error> {
        let stream = self.reader.get_ref();
        let result =
            stream.set_read_timeout(Some(timeout)).and_then(|()| stream.set_write_timeout(Some(timeout)));
        result.map_err(|_| self.disconnect_error())
    }

    /// Gives up the connection, so that its socket can be used for other data than JSON values.
    /// Returns the bytes that have arrived after the last JSON value, and the socket, which has no
    /// timeouts any more.
    ///
    /// # Errors
    ///
    /// [`Error::Disconnected`] if the socket is closed.
    pub fn into_stream(self) -> Result<(Vec<u8>, UnixStream), Error> {
        let stream = self.reader.get_ref();
        let result = stream.set_read_timeout(None).and_then(|()| stream.set_write_timeout(None));
        result.map_err(|_| self.disconnect_error())?;
        Ok((self.reader.buffer().to_vec(), self.reader.into_inner()))
    }

    /// The socket's file descriptor, for poll(2).
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.reader.get_ref().as_fd()
    }

    fn io_error(&self, error: &std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                Error::Unresponsive(self.path.clone())
            }
            _ => self.disconnect_error(),
        }
    }

    fn disconnect_error(&self) -> Error {
        Error::Disconnected(self.path.clone())
    }
}

/// Connects to a socket. Fails with `EAGAIN` if the socket's queue of pending connections stays
/// full for `timeout`.
fn connect_within(path: &Path, timeout: Duration) -> nix::Result<UnixStream> {
    let to_errno = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(0));
    let stream = UnixStream::from(unix_stream_socket().map_err(to_errno)?);
    // On a Unix socket, the write timeout also limits how long `connect` waits.
    match timeout {
        Duration::ZERO => stream.set_nonblocking(true).map_err(to_errno)?,
        timeout => stream.set_write_timeout(Some(timeout)).map_err(to_errno)?,
    }
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)?;
    stream.set_nonblocking(false).map_err(to_errno)?;
    stream.set_write_timeout(None).map_err(to_errno)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{Backlog, bind, listen};

    #[test]
    fn open_fails_if_the_daemon_accepts_no_connection() {
        let path = std::env::temp_dir().join(format!("silent-{}.sock", std::process::id()));
        let listener = unix_stream_socket().unwrap();
        bind(listener.as_raw_fd(), &UnixAddr::new(&path).unwrap()).unwrap();
        listen(&listener, Backlog::new(2).unwrap()).unwrap();
        // The kernel queues connections up to the backlog.
        let mut connections = Vec::new();
        let error = loop {
            match Connection::open_without_blocking(&path) {
                Ok(connection) => connections.push(connection),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Unresponsive(_)) && !connections.is_empty(), "{error}");
        let error = Connection::open_within(&path, Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, Error::Unresponsive(_)), "open_within times out: {error}");
        std::fs::remove_file(path).unwrap();
    }
}
