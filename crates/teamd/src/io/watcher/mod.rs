//! The watcher of files: inotify watches, turned into events.

pub(crate) mod barrier;
pub(crate) mod file_watcher;
pub(crate) mod thread;
