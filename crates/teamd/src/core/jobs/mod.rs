//! The jobs of the I/O threads and their results.

pub(crate) mod files;
pub(crate) mod panes;
pub(crate) mod watcher;
pub(crate) mod worktrees;
