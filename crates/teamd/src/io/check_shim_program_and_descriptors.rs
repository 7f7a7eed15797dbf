//! Checks what the start of a shim needs: the shim's program, and free descriptors of the daemon.

use crate::io::process_start_error::descriptors_error;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// How many file descriptors of the daemon stay free when it starts agents. People need them for
/// calls that show teams and end members, and for the files that these calls read.
const RESERVED_DESCRIPTORS: u64 = 16;

/// Checks that the program `argv[0]` exists and that enough descriptors are left.
///
/// # Errors
///
/// `MissingPath` if the program `argv[0]` does not exist; `Io` if too few descriptors are left.
pub(crate) fn check_shim_start(argv: &[String]) -> Result<(), ErrorReport> {
    check_program_exists(argv)?;
    check_descriptors_left()
}

/// Checks that the shim's program exists. An upgrade can remove it while the daemon runs. tmux
/// would then open a pane that closes at once, and no error would say why.
fn check_program_exists(argv: &[String]) -> Result<(), ErrorReport> {
    let Some(program) = argv.first().filter(|program| !Path::new(program).exists()) else { return Ok(()) };
    let message = format!("cannot start an agent: {program} is gone; teamd was upgraded or moved");
    Err(ErrorReport::new(ErrorKind::MissingPath, message)
        .with_help("start teamd anew: teamctl down --suspend, then teamctl up --resume"))
}

fn check_descriptors_left() -> Result<(), ErrorReport> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    // The directory can't be opened either if no descriptor is free.
    let in_use = std::fs::read_dir("/dev/fd").map_or(limit, |entries| entries.count() as u64);
    match in_use + RESERVED_DESCRIPTORS < limit {
        true => Ok(()),
        false => Err(descriptors_error("an agent")),
    }
}
