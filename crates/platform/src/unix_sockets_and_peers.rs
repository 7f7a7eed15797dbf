//! Unix sockets: descriptors that no started program inherits, and the process at the other end.

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, socket_with};
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// The flag with which `recvmsg` sets close-on-exec on a received descriptor, so that later child
/// processes do not inherit the descriptor. On systems without this flag the constant is empty, and
/// the caller must call [`set_close_on_exec`] instead.
#[cfg(target_os = "linux")]
pub const RECEIVE_CLOSE_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
pub const RECEIVE_CLOSE_ON_EXEC: RecvFlags = RecvFlags::empty();

#[cfg(target_os = "linux")]
const SOCKET_FLAGS: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const SOCKET_FLAGS: SocketFlags = SocketFlags::empty();

/// The process at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketPeer {
    /// The effective user id that the process had when it connected or listened.
    pub uid: u32,
    /// `None` if the system does not tell, or if the process is in another pid namespace.
    pub pid: Option<u32>,
}

/// Creates a Unix stream socket that no started program inherits.
pub fn unix_stream_socket() -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SOCKET_FLAGS, None)?;
    set_close_on_exec(&socket)?;
    Ok(socket)
}

/// Makes a descriptor one that no started program inherits.
pub fn set_close_on_exec(descriptor: impl AsFd) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, FdFlags::CLOEXEC)?)
}
