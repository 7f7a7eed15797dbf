//! The jobs of the I/O threads and their results.

pub(crate) mod file_jobs;
pub(crate) mod file_results;
pub(crate) mod file_watcher_command;
pub(crate) mod host_jobs;
pub(crate) mod iterm2_jobs;
pub(crate) mod pane_jobs;
pub(crate) mod queue_and_batch_of_file_job;
pub(crate) mod team_record_lines;
pub(crate) mod worktree_jobs;
