//! Helpers for tmux commands: escaping of arguments and the error for a missing tmux.

use protocol::error::{ErrorKind, ErrorReport};

/// Escapes a `;` at the end of a tmux argument, which would end the tmux command.
pub fn escape_for_tmux(argument: &str) -> String {
    match argument.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => argument.to_owned(),
    }
}

/// The error if tmux cannot be run.
pub fn tmux_failed(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, format!("cannot run tmux: {error}")).with_help(
        "install tmux 3.2 or newer; or run teamd by hand, and spawn members with --backend in-process",
    )
}
