//! The error for a missing tmux: tmux cannot be run.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};

/// The error if tmux cannot be run.
pub fn tmux_failed(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, format!("cannot run tmux: {error}")).with_help(
        "install tmux 3.2 or newer; or run teamd by hand, and spawn members with --backend in-process",
    )
}
