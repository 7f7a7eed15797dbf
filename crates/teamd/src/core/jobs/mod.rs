//! The jobs of the I/O threads and their results.

pub(crate) mod file_job;
pub(crate) mod pane_job;
pub(crate) mod watch_command;
pub(crate) mod worktree_job;
