//! Looks up a single process on the running system.

use crate::choose_system::system;
use crate::{ExitHandle, ProcessEntry};
use std::io;

impl ProcessEntry {
    /// The entry of the process `pid`. `None` if there is no such process, or if the table cannot
    /// be read.
    pub fn read(pid: u32) -> Option<ProcessEntry> {
        system().process(pid).ok().flatten()
    }

    /// When the process `pid` was started. The unit depends on the system. `None` if the process
    /// has exited, even if it is still in the table as a zombie.
    ///
    /// # Errors
    ///
    /// If the process table cannot be read. The error does not mean that the process has exited.
    pub fn start_time(pid: u32) -> io::Result<Option<u64>> {
        let entry = system().process(pid)?;
        Ok(entry.filter(|entry| !entry.zombie).map(|entry| entry.start))
    }

    /// Whether the process is still in the table, running or as a zombie.
    pub fn exists(&self) -> bool {
        ProcessEntry::read(self.pid).is_some_and(|current| current.is_same(self))
    }
}

impl ExitHandle {
    /// Opens a handle of the process `pid`. `None` if there is no such process, or if it cannot be
    /// watched.
    pub fn open(pid: u32) -> Option<ExitHandle> {
        system().open_process(pid).ok().flatten()
    }

    /// Opens a handle of the process `pid` that was started at `start_time`. `None` if this process
    /// has exited.
    ///
    /// # Errors
    ///
    /// If the process table cannot be read. The error does not mean that the process has exited.
    pub fn open_started_at(pid: u32, start_time: u64) -> io::Result<Option<ExitHandle>> {
        // The handle is opened before the start times are compared. So if they match, the handle
        // refers to this process.
        let handle = ExitHandle::open(pid);
        let is_same = ProcessEntry::start_time(pid)? == Some(start_time);
        Ok(handle.filter(|_| is_same))
    }
}
