//! Errors between the caller and the daemon, and what to try next.

use protocol::control::framing;
use protocol::error::{ErrorKind, ErrorReport};
use std::path::PathBuf;

/// What went wrong on the way to the daemon or back.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there.
    #[error("cannot reach teamd at {}: {source}", path.display())]
    NotRunning {
        /// The socket.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It was there, and went away before it answered.
    #[error("teamd at {} went away before it answered", .0.display())]
    Disconnected(PathBuf),
    /// It is there, and says nothing: stopped, or overwhelmed.
    #[error("teamd at {} does not answer; what was asked may still happen", .0.display())]
    Unresponsive(PathBuf),
    /// Somebody else's socket.
    #[error("cannot trust the socket {}: it is served by uid {uid}", path.display())]
    WrongUser {
        /// The socket.
        path: PathBuf,
        /// Whose it is.
        uid: u32,
    },
    /// Not our conversation.
    #[error(transparent)]
    Frame(#[from] framing::FrameError),
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
                let hint =
                    format!("see whose it is: ls -l {}; or name another: --socket PATH", path.display());
                ErrorReport::new(ErrorKind::NotPermitted, message).with_help(hint)
            }
            Error::Frame(_) => ErrorReport::new(ErrorKind::Internal, message)
                .with_help("is teamd of another release? see: teamctl doctor"),
        }
    }
}

/// The daemon answered something else than what it was asked.
pub fn unexpected_reply() -> ErrorReport {
    ErrorReport::new(ErrorKind::Internal, "cannot understand the daemon's answer")
        .with_help("is teamd of another release? see: teamctl doctor")
}
