//! Environment variables and the path of the running program.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::PathBuf;

/// The value of an environment variable. `None` if it is unset, empty or not UTF-8.
pub fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// All environment variables that are UTF-8.
pub fn env_vars() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The path of the running program. From this path, `protocol::find_sibling_program` finds the
/// other programs of teamd.
///
/// # Errors
/// `Internal` if the kernel does not report the path.
pub fn own_program() -> Result<PathBuf, ErrorReport> {
    std::env::current_exe().map_err(|error| {
        ErrorReport::new(ErrorKind::Internal, format!("cannot find our own program: {error}"))
    })
}
