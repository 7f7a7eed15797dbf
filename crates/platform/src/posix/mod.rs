//! What every POSIX system has. It serves systems without an implementation of their own, and tests that
//! run with `TEAMD_PLATFORM=posix`.
//!
//! POSIX has no process table; `ps` shows one. POSIX reports the exit of a process only to its parent.

mod ps_table;
mod watch_exit;

use crate::ExitHandle;
use crate::ProcessEntry;
use crate::system::System;
use std::io;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Posix;

impl System for Posix {
    fn process(&self, pid: u32) -> io::Result<Option<ProcessEntry>> {
        watch_exit::find(pid)
    }

    fn processes(&self) -> io::Result<Vec<ProcessEntry>> {
        ps_table::read(ps_table::Selection::All)
    }

    fn program_name(&self, pid: u32) -> Option<String> {
        ps_table::program_name(pid)
    }

    fn open_process(&self, pid: u32) -> io::Result<Option<ExitHandle>> {
        watch_exit::open(pid)
    }

    fn mount_points(&self) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
