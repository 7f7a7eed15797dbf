//! Watches the directories of teams and reports changes of their files as events.

pub(crate) mod barrier_files;
pub(crate) mod file_watcher;
pub(crate) mod thread_that_adds_watches;
