//! Finds the installed program of a profile.

use profile::{Profile, find_program_in_path};
use std::path::{Path, PathBuf};
use store::env_var;

/// The path of the program that the profile starts. `None` if the program is not installed, or if
/// the profile is built in and starts no separate program.
pub(super) fn installed_path(profile: &Profile) -> Option<PathBuf> {
    let program = profile.program()?;
    // Outside of a spawn, `{teamctl}` is the only template variable with a value.
    let teamctl = std::env::current_exe().ok()?;
    let program = program.replace("{teamctl}", &teamctl.to_string_lossy());
    find_program_in_path::find_program(&program, Path::new("."), &env_var("PATH").unwrap_or_default())
}
