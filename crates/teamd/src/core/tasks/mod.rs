//! The task list, and which task an agent takes next.

pub(crate) mod next_task;
pub(crate) mod task_scan_results;
