//! The jobs of the I/O threads and their results.

pub(crate) mod file_jobs;
pub(crate) mod file_lanes;
pub(crate) mod file_watcher_command;
pub(crate) mod pane_jobs;
pub(crate) mod worktree_jobs;
