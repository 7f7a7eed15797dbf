//! Checks what the start of a shim needs: the shim's program, and free descriptors of the daemon.

use crate::io::process_start_error::descriptors_error;
use protocol::error::{ErrorKind, ErrorReport};
use rustix::process::{Resource, getrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// How many descriptors no start of an agent may use. They are for the calls with which people look
/// at their teams and end members, and for the files that these calls need.
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

/// An upgrade can remove the program while the daemon runs. Without this check, tmux would open a
/// pane that closes at once.
fn check_program_exists(argv: &[String]) -> Result<(), ErrorReport> {
    let Some(program) = argv.first().filter(|program| !Path::new(program).exists()) else { return Ok(()) };
    let message = format!("cannot start an agent: {program} is gone; teamd was upgraded or moved");
    Err(ErrorReport::new(ErrorKind::MissingPath, message)
        .with_help("start teamd anew: teamctl down --suspend, then teamctl up --resume"))
}

/// The kernel gives a new file the lowest free descriptor, so its number says how many are in use.
fn check_descriptors_left() -> Result<(), ErrorReport> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(()) };
    let in_use = File::open("/dev/null").ok().and_then(|file| u64::try_from(file.as_raw_fd()).ok());
    match in_use.is_some_and(|in_use| in_use + RESERVED_DESCRIPTORS < limit) {
        true => Ok(()),
        false => Err(descriptors_error("an agent")),
    }
}
