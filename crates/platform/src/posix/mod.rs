//! What every POSIX system has. It serves systems without an implementation of their own, and tests that
//! run with `TEST_PLATFORM=posix`.
//!
//! POSIX has no process table; `ps` shows one. POSIX reports the exit of a process only to its parent.

mod ps_table;
mod watch_process_exit;

use crate::system_trait::System;
use crate::{EnvironmentError, ExitHandle, ProcessEntry, ProcessEnvironment, SocketPeer};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

#[derive(Debug)]
pub(crate) struct Posix;

impl System for Posix {
    fn process(&self, pid: u32) -> io::Result<Option<ProcessEntry>> {
        ps_table::find(pid)
    }

    fn processes(&self) -> io::Result<Vec<ProcessEntry>> {
        ps_table::read(ps_table::Selection::All)
    }

    fn program_name(&self, pid: u32) -> Option<String> {
        ps_table::program_name(pid)
    }

    /// `ps` separates the entries by spaces, so a value with a space reads as several entries.
    fn environment(&self, pid: u32) -> Result<Vec<u8>, EnvironmentError> {
        ps_table::environment(pid)
    }

    fn environments(&self) -> io::Result<Vec<ProcessEnvironment>> {
        ps_table::read_environments()
    }

    fn open_process(&self, pid: u32) -> io::Result<Option<ExitHandle>> {
        watch_process_exit::open(pid)
    }

    /// POSIX has no such call, and every system has one of its own.
    fn peer_of(&self, socket: BorrowedFd<'_>) -> io::Result<SocketPeer> {
        #[cfg(target_os = "linux")]
        return crate::linux::Linux.peer_of(socket);
        #[cfg(any(target_os = "macos", target_os = "freebsd"))]
        return crate::bsd::Bsd.peer_of(socket);
        #[allow(unreachable_code, reason = "the systems above have returned")]
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("cannot tell who is behind {socket:?}")))
    }

    fn mount_points(&self) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
