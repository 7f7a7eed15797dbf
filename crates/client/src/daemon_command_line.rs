//! Builds the command line that starts teamd.

use crate::root_socket_team_and_caller::TeamContext;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::find_sibling_program::installed_program;
use std::path::{Path, PathBuf};
use store::own_program;

/// The command-line arguments of teamd, for the root of `context` and the control socket `socket`.
/// `options` are more arguments.
///
/// The arguments always name the root, because the environment of the tmux server that starts teamd
/// may name another root.
pub fn daemon_args(
    context: &TeamContext,
    socket: &Path,
    options: &[String],
) -> Result<Vec<String>, ErrorReport> {
    let path_text = |path: &Path| path.to_string_lossy().into_owned();
    let root = context.root_path()?;
    let mut args = vec!["--socket".to_owned(), path_text(socket), "--root".to_owned(), path_text(&root)];
    args.extend_from_slice(options);
    Ok(args)
}

/// Path of the program `teamd` in this installation. The PATH is not searched, because another
/// package may have a program of the same name.
///
/// # Errors
///
/// `MissingPath` if the installation has no teamd.
pub fn daemon_path() -> Result<PathBuf, ErrorReport> {
    let path = installed_program(&own_program()?, "teamd", Path::is_file);
    if path.is_file() {
        return Ok(path);
    }
    Err(ErrorReport::new(ErrorKind::MissingPath, format!("cannot find {}", path.display()))
        .with_help("install all programs: make install"))
}
