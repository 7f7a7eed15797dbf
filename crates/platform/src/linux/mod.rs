//! The facilities of Linux. All files of /proc are read here.

mod flock_holders;
mod limits_of_processes_ptys_and_watches;
mod mount_points;
mod multigrain_timestamps;
mod process_environment;
mod process_program_and_open_files;
mod process_table;
mod terminal_paths_and_reads;
mod write_leases;

use crate::process_exit_handle::to_pid;
use crate::system_trait::System;
use crate::{
    EnvironmentError, ExitHandle, PidOrigin, ProcessEntry, ResourceLimit, SocketPeer, TerminalReads,
    WatchLimit, WriteLease,
};
use rustix::fs::{MemfdFlags, RenameFlags, memfd_create, renameat_with};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, Resource, Rlimit, Signal, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Linux 5.3 and newer, which have pidfds.
#[derive(Debug)]
pub(crate) struct Linux;

impl System for Linux {
    fn process(&self, pid: u32) -> io::Result<Option<ProcessEntry>> {
        process_table::read(pid)
    }

    fn processes(&self) -> io::Result<Vec<ProcessEntry>> {
        process_table::read_all()
    }

    fn children(&self, parent: u32) -> Option<Vec<u32>> {
        process_table::children(parent)
    }

    fn program_name(&self, pid: u32) -> Option<String> {
        process_table::program_name(pid)
    }

    fn environment(&self, pid: u32) -> Result<Vec<u8>, EnvironmentError> {
        process_environment::read(pid)
    }

    fn command_line(&self, pid: u32) -> Vec<u8> {
        std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
    }

    fn executable(&self, pid: u32) -> Option<PathBuf> {
        process_program_and_open_files::executable(pid)
    }

    fn open_files(&self, pid: u32) -> Vec<PathBuf> {
        process_program_and_open_files::open_files(pid)
    }

    fn directories_in_use(&self, pid: u32) -> Vec<PathBuf> {
        process_program_and_open_files::directories_in_use(pid)
    }

    fn locked_inodes(&self, pid: u32) -> Option<Vec<u64>> {
        Some(flock_holders::locked_inodes(pid))
    }

    fn lock_holder(&self, inode: u64) -> Option<u32> {
        flock_holders::lock_holder(inode)
    }

    fn pid_origin(&self) -> PidOrigin {
        process_table::pid_origin()
    }

    fn open_process(&self, pid: u32) -> io::Result<Option<ExitHandle>> {
        let Some(pid) = to_pid(pid) else { return Ok(None) };
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(fd) => {
                let send_signal = |fd: &OwnedFd, signal| Ok(pidfd_send_signal(fd, signal)?);
                Ok(Some(ExitHandle { fd, send_signal: Box::new(send_signal) }))
            }
            // The last two mean that the number is now that of a thread. Old kernels report EINVAL.
            Err(Errno::SRCH | Errno::NOENT | Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn send_signal(&self, process: &ProcessEntry, signal: Signal) -> io::Result<()> {
        // The pidfd is opened first, so no signal reaches a new process that has got the same pid.
        let handle = self.open_process(process.pid)?;
        let is_same = process_table::read(process.pid)?.is_some_and(|current| current.is_same(process));
        handle.filter(|_| is_same).ok_or(Errno::SRCH)?.send_signal(signal)
    }

    fn set_limit_of(&self, pid: u32, resource: Resource, limit: Rlimit) -> io::Result<Rlimit> {
        // Without a pid, `prlimit` would change the limits of this process.
        let pid = to_pid(pid).ok_or(Errno::SRCH)?;
        Ok(rustix::process::prlimit(Some(pid), resource, limit)?)
    }

    fn peer_of(&self, socket: BorrowedFd<'_>) -> io::Result<SocketPeer> {
        let peer = rustix::net::sockopt::socket_peercred(socket)?;
        Ok(SocketPeer {
            uid: peer.uid.as_raw(),
            pid: u32::try_from(peer.pid.as_raw_pid()).ok().filter(|pid| *pid > 0),
        })
    }

    fn adopt_orphans(&self) -> io::Result<()> {
        Ok(nix::sys::prctl::set_child_subreaper(true)?)
    }

    fn ignored_signals(&self) -> Vec<i32> {
        process_table::ignored_signals()
    }

    fn rename_if_absent(&self, directory: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
        Ok(renameat_with(directory, from, directory, to, RenameFlags::NOREPLACE)?)
    }

    fn exchange_names(&self, directory: BorrowedFd<'_>, first: &str, second: &str) -> io::Result<()> {
        Ok(renameat_with(directory, first, directory, second, RenameFlags::EXCHANGE)?)
    }

    fn take_write_lease<'f>(&self, file: &'f File) -> Option<WriteLease<'f>> {
        write_leases::take(file)
    }

    fn has_multigrain_timestamps(&self, directory: BorrowedFd<'_>) -> bool {
        multigrain_timestamps::are_multigrain(directory)
    }

    fn has_access_control_list(&self, file: BorrowedFd<'_>) -> bool {
        let result = rustix::fs::fgetxattr(file, c"system.posix_acl_access", &mut [0_u8; 1024]);
        !matches!(result, Err(Errno::NODATA | Errno::OPNOTSUPP))
    }

    fn file_events_name_files(&self) -> bool {
        true
    }

    fn unnamed_file(&self) -> io::Result<File> {
        Ok(memfd_create("teamd", MemfdFlags::CLOEXEC)?.into())
    }

    fn mount_points(&self) -> io::Result<Vec<PathBuf>> {
        mount_points::mount_points()
    }

    fn watch_terminal_reads(&self, device: &Path) -> Option<TerminalReads> {
        terminal_paths_and_reads::watch_reads(device)
    }

    fn terminal_path(&self, device: u32) -> Option<PathBuf> {
        terminal_paths_and_reads::path(device)
    }

    fn resource_limits(&self) -> Vec<ResourceLimit> {
        limits_of_processes_ptys_and_watches::all(Path::new("/"))
    }

    fn watch_limits(&self) -> Vec<WatchLimit> {
        limits_of_processes_ptys_and_watches::watch_limits()
    }
}
