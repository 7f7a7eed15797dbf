//! The keys of a task's metadata in which a run counts the task's releases.

/// The number of times that the task was released after a failure.
pub(crate) const RETRIES_KEY: &str = "retries";
/// The number of times that the task was released because its owner had exited.
pub(crate) const ABANDONED_KEY: &str = "abandoned";
