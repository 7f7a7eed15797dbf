//! Finds processes that use a directory.
//!
//! A process uses the directory if its working directory, its root, its program or one of its open
//! files is in the directory. Only processes that this user may inspect are found. The calling
//! process itself is left out.

use crate::error::{Error, io_error};
use std::path::Path;

/// Returns the ids of the processes that use `directory`, in ascending order.
///
/// # Errors
///
/// [`Error::Io`] if the processes of the system cannot be listed. Then it is unknown whether a
/// process uses the directory.
pub(crate) fn processes_using(directory: &Path) -> Result<Vec<u32>, Error> {
    let processes =
        platform::system().processes().map_err(io_error("list the processes that use", directory))?;
    let pids = processes.iter().map(|process| process.pid);
    let other_pids = pids.filter(|pid| *pid != std::process::id());
    let mut users: Vec<u32> = other_pids.filter(|pid| uses_directory(*pid, directory)).collect();
    users.sort_unstable();
    Ok(users)
}

/// Whether a process uses the directory. False if the process has exited or may not be inspected.
fn uses_directory(pid: u32, directory: &Path) -> bool {
    let is_inside = |paths: Vec<_>| paths.iter().any(|path: &std::path::PathBuf| path.starts_with(directory));
    let system = platform::system();
    is_inside(system.directories_in_use(pid)) || is_inside(system.open_files(pid))
}
