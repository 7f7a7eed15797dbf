//! Checks that the program of the shim exists. An upgrade can remove it while the daemon runs.
//! Without this check, tmux would open a pane that closes at once.

use protocol::error::{ErrorKind, ErrorReport};
use std::path::Path;

/// Checks that the program `argv[0]` exists.
///
/// # Errors
///
/// `MissingPath` if the program `argv[0]` does not exist.
pub(crate) fn check_shim_program(argv: &[String]) -> Result<(), ErrorReport> {
    let Some(program) = argv.first().filter(|program| !Path::new(program).exists()) else { return Ok(()) };
    let message = format!("cannot start an agent: {program} is gone; teamd was upgraded or moved");
    Err(ErrorReport::new(ErrorKind::MissingPath, message)
        .with_help("start teamd anew: teamctl down --suspend, then teamctl up --resume"))
}
