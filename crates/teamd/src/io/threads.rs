//! The error of a thread that can not be started.

use protocol::error::{ErrorKind, ErrorReport};

/// The daemon does not start without its threads.
pub(crate) fn thread_error(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::Io, format!("cannot start a thread: {error}"))
        .with_help("are there too many processes? see: ulimit -u")
}
