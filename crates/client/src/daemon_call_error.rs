//! Errors of the connection to the daemon, with help texts for users.

use protocol::control_socket::framing;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::PathBuf;

/// Why a call to the daemon failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No daemon listens on the socket.
    #[error("cannot reach teamd at {}: {}", path.display(), unreachable_reason(source))]
    NotRunning {
        /// Path of the socket.
        path: PathBuf,
        /// Error of the system call.
        source: std::io::Error,
    },
    /// The daemon closed the connection before it replied.
    #[error("teamd at {} went away before it answered", .0.display())]
    Disconnected(PathBuf),
    /// The daemon does not reply, because its process is stopped or overloaded.
    #[error("teamd at {} does not answer; what was asked may still happen", .0.display())]
    Unresponsive(PathBuf),
    /// The socket belongs to another user.
    #[error("cannot trust the socket {}: it is served by uid {uid}", path.display())]
    WrongUser {
        /// Path of the socket.
        path: PathBuf,
        /// User id of the process that serves the socket.
        uid: u32,
    },
    /// The process at the other end sent data that is not part of the protocol.
    #[error(transparent)]
    Frame(#[from] framing::FrameError),
}

/// Why nothing answers at the socket. Without a socket, or with one that nobody listens at, no daemon runs.
fn unreachable_reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::ConnectionRefused => {
            "it is not running".to_owned()
        }
        _ => error.to_string(),
    }
}

impl From<Error> for ErrorReport {
    fn from(error: Error) -> ErrorReport {
        let message = error.to_string();
        match error {
            Error::NotRunning { .. } | Error::Disconnected(_) => {
                ErrorReport::new(ErrorKind::NoDaemon, message).with_help("start it with: teamctl up")
            }
            Error::Unresponsive(_) => {
                ErrorReport::new(ErrorKind::Timeout, message).with_help("is it stopped? see: pgrep -a teamd")
            }
            Error::WrongUser { ref path, .. } => {
                let help =
                    format!("see whose it is: ls -l {}; or name another: --socket PATH", path.display());
                ErrorReport::new(ErrorKind::NotPermitted, message).with_help(help)
            }
            Error::Frame(_) => ErrorReport::new(ErrorKind::Internal, message)
                .with_help("is teamd of another release? see: teamctl doctor"),
        }
    }
}

/// The error for a reply that does not fit the request.
pub fn unexpected_reply() -> ErrorReport {
    ErrorReport::new(ErrorKind::Internal, "cannot understand the daemon's answer")
        .with_help("is teamd of another release? see: teamctl doctor")
}
