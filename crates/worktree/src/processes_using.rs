//! Finds processes that use a directory.
//!
//! A process uses the directory if its working directory, its root, its program or one of its open
//! files is in the directory. Only processes that this user may inspect are found. The calling
//! process itself is left out.

use std::fs::{read_dir, read_link};
use std::path::Path;

/// Returns the ids of the processes that use `directory`, in ascending order.
pub(crate) fn processes_using(directory: &Path) -> Vec<u32> {
    let pids = read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let other_pids = pids.filter(|pid| *pid != std::process::id());
    let mut users: Vec<u32> = other_pids.filter(|pid| uses_directory(*pid, directory)).collect();
    users.sort_unstable();
    users
}

/// Whether a process uses the directory. False if the process has exited or may not be inspected.
fn uses_directory(pid: u32, directory: &Path) -> bool {
    let process = Path::new("/proc").join(pid.to_string());
    let points_inside = |link: &Path| read_link(link).is_ok_and(|target| target.starts_with(directory));
    let has_link = ["cwd", "root", "exe"].iter().any(|name| points_inside(&process.join(name)));
    has_link
        || read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
            .any(|entry| points_inside(&entry.path()))
}
