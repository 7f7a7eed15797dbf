//! Processes in a directory: those whose working directory, root, program or open file lies below it. Only those that
//! we may look at, our own user's; this one is left out.

use std::fs::{read_dir, read_link};
use std::path::Path;

/// Their pids, in order.
pub(crate) fn processes_using(directory: &Path) -> Vec<u32> {
    let pids = read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id());
    let mut found: Vec<u32> = others.filter(|pid| uses_directory(*pid, directory)).collect();
    found.sort_unstable();
    found
}

fn uses_directory(pid: u32, directory: &Path) -> bool {
    let of = Path::new("/proc").join(pid.to_string());
    let leads = |link: &Path| read_link(link).is_ok_and(|to| to.starts_with(directory));
    let places = ["cwd", "root", "exe"].iter().any(|name| leads(&of.join(name)));
    places || read_dir(of.join("fd")).into_iter().flatten().flatten().any(|entry| leads(&entry.path()))
}
