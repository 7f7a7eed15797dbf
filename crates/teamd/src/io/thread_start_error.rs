//! The error report for a thread that cannot be started.

use protocol::error::{ErrorKind, ErrorReport};

/// The error with which the daemon exits at startup if one of its threads cannot be started.
pub(crate) fn thread_error(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot start a thread: {error}"))
        .with_help("are there too many processes? see: ulimit -u")
}
