//! Finds what the daemon needs to open a split pane of iTerm2 (on macOS): the program `it2`, and
//! the id of the iTerm2 session in which the caller runs.

use crate::find_program_in_path::find_program;
use protocol::control_socket::Iterm2Access;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use store::env_var;

/// Finds `it2` in the search path `path`, and the id of the caller's iTerm2 session in the variable
/// `ITERM_SESSION_ID`.
///
/// # Errors
///
/// `MissingPath` if `it2` is not installed.
pub(crate) fn find_iterm2(path: &str) -> Result<Iterm2Access, ErrorReport> {
    let cwd = std::env::current_dir().unwrap_or_default();
    let it2 = find_program("it2", &cwd, path).ok_or_else(|| it2_missing_error(path))?;
    Ok(Iterm2Access { it2, session: env_var("ITERM_SESSION_ID").and_then(|id| session_uuid(&id)) })
}

/// The UUID in a value such as `w0t1p2:UUID`.
fn session_uuid(id: &str) -> Option<String> {
    Some(id.rsplit_once(':')?.1.to_owned())
}

fn it2_missing_error(path: &str) -> ErrorReport {
    let message = format!("cannot open a session of iTerm2: no program it2 in your PATH, {path}");
    ErrorReport::new(ErrorKind::MissingPath, message).with_help(
        "install it: pipx install it2; then enable the Python API in iTerm2's Settings > General > Magic; without it, use tmux -CC: see docs/tmux.md",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_is_the_uuid_and_a_missing_program_is_an_error() {
        assert_eq!(session_uuid("w0t1p2:AB-C"), Some("AB-C".to_owned()));
        assert_eq!(session_uuid("AB-C"), None);
        assert_eq!(find_iterm2("/nowhere").unwrap_err().kind, ErrorKind::MissingPath);
    }
}
