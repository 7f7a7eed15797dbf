//! Words and errors of calls of tmux.

use protocol::error::{ErrorKind, ErrorReport};

/// An argument that ends in `;` would end the tmux command.
pub fn escape_for_tmux(argument: &str) -> String {
    match argument.strip_suffix(';') {
        Some(rest) => format!("{rest}\\;"),
        None => argument.to_owned(),
    }
}

pub fn tmux_failed(error: &std::io::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, format!("cannot run tmux: {error}"))
        .with_help("install tmux 3.2 or newer")
}
