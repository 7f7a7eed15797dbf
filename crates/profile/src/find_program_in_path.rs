//! Finds programs in a `PATH`.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::path::{Path, PathBuf};

/// The path of the file that execvp would run for `program`. `None` if there is no such file.
/// `path` is the value of `PATH`. Relative paths are resolved against `cwd`.
pub fn find_program(program: &str, cwd: &Path, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let executable =
        |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return Some(cwd.join(program)).filter(executable);
    }
    std::env::split_paths(path).map(|directory| cwd.join(directory).join(program)).find(executable)
}

/// Whether execvp would find the program.
pub fn program_exists(program: &str, cwd: &Path, path: &str) -> bool {
    find_program(program, cwd, path).is_some()
}

/// The error for a program that was not found.
pub fn program_not_found(program: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, format!("cannot start {program}: no such program")).with_help(
        "check its spelling, or install it; profiles with an installed program: teamctl profiles check",
    )
}
