//! The facilities of macOS and FreeBSD: kqueue, and the process table by the library `sysinfo`.
//!
//! This module was never run: the compiler checks its types for both systems.

mod process_table_and_details;
mod watch_process_exit;

use crate::signal_by_pid::confirm_absence;
use crate::system_trait::System;
use crate::{EnvironmentError, ExitHandle, PidOrigin, ProcessEntry, ProcessEnvironment, SocketPeer};
use std::io;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::process::Command;

#[derive(Debug)]
pub(crate) struct Bsd;

impl System for Bsd {
    fn process(&self, pid: u32) -> io::Result<Option<ProcessEntry>> {
        confirm_absence(pid, process_table_and_details::read(pid))
    }

    fn processes(&self) -> io::Result<Vec<ProcessEntry>> {
        Ok(process_table_and_details::read_all())
    }

    fn program_name(&self, pid: u32) -> Option<String> {
        process_table_and_details::program_name(pid)
    }

    /// Empty also for the programs of Apple, whose environments macOS hides.
    fn environment(&self, pid: u32) -> Result<Vec<u8>, EnvironmentError> {
        Ok(process_table_and_details::environment(pid))
    }

    fn environments(&self) -> io::Result<Vec<ProcessEnvironment>> {
        Ok(process_table_and_details::read_environments())
    }

    fn command_line(&self, pid: u32) -> Vec<u8> {
        process_table_and_details::command_line(pid)
    }

    fn executable(&self, pid: u32) -> Option<PathBuf> {
        process_table_and_details::executable(pid)
    }

    fn directories_in_use(&self, pid: u32) -> Vec<PathBuf> {
        process_table_and_details::directories_in_use(pid)
    }

    fn pid_origin(&self) -> PidOrigin {
        PidOrigin { boot_id: boot_id(), pid_namespace: None }
    }

    fn open_process(&self, pid: u32) -> io::Result<Option<ExitHandle>> {
        watch_process_exit::open(pid)
    }

    fn peer_of(&self, socket: BorrowedFd<'_>) -> io::Result<SocketPeer> {
        let (uid, _) = nix::unistd::getpeereid(socket)?;
        Ok(SocketPeer { uid: uid.as_raw(), pid: peer_pid(socket) })
    }

    #[cfg(target_os = "freebsd")]
    fn adopt_orphans(&self) -> io::Result<()> {
        Ok(rustix::process::set_reaper_status(true)?)
    }

    #[cfg(target_os = "macos")]
    fn rename_if_absent(&self, directory: BorrowedFd<'_>, from: &str, to: &str) -> io::Result<()> {
        let flags = rustix::fs::RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(directory, from, directory, to, flags) {
            // Some file systems, such as SMB, cannot do it.
            Err(rustix::io::Errno::NOTSUP) => Err(rustix::io::Errno::NOSYS.into()),
            result => Ok(result?),
        }
    }

    #[cfg(target_os = "macos")]
    fn exchange_names(&self, directory: BorrowedFd<'_>, first: &str, second: &str) -> io::Result<()> {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        Ok(rustix::fs::renameat_with(directory, first, directory, second, flags)?)
    }

    #[cfg(target_os = "macos")]
    fn sync_directory(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::fs::fcntl_fullfsync(directory)?)
    }

    /// Only processes in the session of the screen, which `launchctl` names `Aqua`, can read the
    /// Keychain.
    #[cfg(target_os = "macos")]
    fn can_read_login_passwords(&self) -> Option<bool> {
        let output = Command::new("/bin/launchctl").arg("managername").output().ok()?;
        output.status.success().then(|| output.stdout.trim_ascii() == b"Aqua")
    }

    #[cfg(target_os = "macos")]
    fn clipboard_program(&self) -> Option<Command> {
        Some(Command::new("/usr/bin/pbcopy"))
    }

    fn mount_points(&self) -> io::Result<Vec<PathBuf>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(target_os = "macos")]
fn peer_pid(socket: BorrowedFd<'_>) -> Option<u32> {
    let pid = nix::sys::socket::getsockopt(&socket, nix::sys::socket::sockopt::LocalPeerPid).ok()?;
    u32::try_from(pid).ok().filter(|pid| *pid > 0)
}

/// `None`, since `getpeereid` returns no pid. FreeBSD 13 and newer has it in `LOCAL_PEERCRED`, which is not
/// used here.
#[cfg(target_os = "freebsd")]
fn peer_pid(_: BorrowedFd<'_>) -> Option<u32> {
    None
}

/// The name of the setting that differs between any two boots.
#[cfg(target_os = "macos")]
const BOOT_SETTING: &str = "kern.bootsessionuuid";
#[cfg(target_os = "freebsd")]
const BOOT_SETTING: &str = "kern.boot_id";

/// The id of the boot. `None` if the system has no such setting.
fn boot_id() -> Option<String> {
    let output = Command::new("/sbin/sysctl").args(["-n", BOOT_SETTING]).output().ok()?;
    let id = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !id.is_empty()).then_some(id)
}
