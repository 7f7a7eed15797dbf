//! The program, the directories and the open files of a process: links below /proc/PID.

use std::fs::{read_dir, read_link};
use std::path::{Path, PathBuf};

pub(super) fn executable(pid: u32) -> Option<PathBuf> {
    read_link(directory(pid).join("exe")).ok()
}

pub(super) fn directories_in_use(pid: u32) -> Vec<PathBuf> {
    let links = ["cwd", "root", "exe"].map(|name| directory(pid).join(name));
    links.into_iter().filter_map(|link| read_link(link).ok()).collect()
}

pub(super) fn open_files(pid: u32) -> Vec<PathBuf> {
    let entries = read_dir(directory(pid).join("fd")).into_iter().flatten().flatten();
    entries.filter_map(|entry| read_link(entry.path()).ok()).collect()
}

fn directory(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}
