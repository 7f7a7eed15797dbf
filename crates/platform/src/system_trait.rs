//! The trait that each operating system implements.

use crate::signal_by_pid::kill_if_same;
use crate::{
    EnvironmentError, ExitHandle, PidOrigin, ProcessEntry, ProcessEnvironment, ResourceLimit, SocketPeer,
    TerminalReads, WatchLimit, WriteLease,
};
use rustix::process::{Resource, Rlimit, Signal};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The facilities of an operating system. `pid` is a process id. The unit of a process's start time
/// depends on the system.
///
/// Most default implementations report an unknown value or an unsupported operation. Each system
/// overrides the methods that it supports.
pub trait System: Debug + Sync {
    /// The entry of a process in the process table. `None` if there is no such process.
    ///
    /// # Errors
    ///
    /// If the table cannot be read, for example because no descriptor is free. The error does not
    /// mean that the process has exited.
    fn process(&self, pid: u32) -> io::Result<Option<ProcessEntry>>;

    /// The entries of all processes that this user may see.
    fn processes(&self) -> io::Result<Vec<ProcessEntry>>;

    /// The pids of the children of a process. `None` if the list may be incomplete. The caller then
    /// searches the whole process table.
    fn children(&self, _parent: u32) -> Option<Vec<u32>> {
        None
    }

    /// The name of the program that a process runs, which may be cut. `None` if it is unknown.
    fn program_name(&self, pid: u32) -> Option<String>;

    /// The environment of a process, as entries that end with a NUL. Empty if the process is gone,
    /// or if this user may not read it.
    fn environment(&self, _pid: u32) -> Result<Vec<u8>, EnvironmentError> {
        Err(EnvironmentError::Unsupported)
    }

    /// The environments of all processes that this user may see.
    fn environments(&self) -> io::Result<Vec<ProcessEnvironment>> {
        let with_environment =
            |process: ProcessEntry| ProcessEnvironment { process, entries: self.environment(process.pid) };
        Ok(self.processes()?.into_iter().map(with_environment).collect())
    }

    /// The command line of a process, as arguments that end with a NUL. Empty if it is unknown.
    fn command_line(&self, _pid: u32) -> Vec<u8> {
        Vec::new()
    }

    /// The path of the program that a process runs. It ends with ` (deleted)` if the file was
    /// removed.
    fn executable(&self, _pid: u32) -> Option<PathBuf> {
        None
    }

    /// The files that a process has open. Empty if they are unknown.
    fn open_files(&self, _pid: u32) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The working directory, the root directory and the program of a process, as far as they are
    /// known.
    fn directories_in_use(&self, _pid: u32) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The inodes on which a process holds a flock. `None` if the system does not tell.
    fn locked_inodes(&self, _pid: u32) -> Option<Vec<u64>> {
        None
    }

    /// The process that holds a flock on the file with this inode. `None` if it is unknown.
    fn lock_holder(&self, _inode: u64) -> Option<u32> {
        None
    }

    /// The boot and the pid namespace in which the pids of this process are valid.
    fn pid_origin(&self) -> PidOrigin {
        PidOrigin::default()
    }

    /// Opens a handle that becomes readable when the process exits. `None` if the process has
    /// exited.
    fn open_process(&self, pid: u32) -> io::Result<Option<ExitHandle>>;

    /// Sends a signal to `process`, unless another process has its pid now.
    ///
    /// # Errors
    ///
    /// `ESRCH` if the process has exited.
    fn send_signal(&self, process: &ProcessEntry, signal: Signal) -> io::Result<()> {
        kill_if_same(process, self.process(process.pid)?, signal)
    }

    /// Sets a resource limit, such as the number of open files, of another process of this user.
    /// Returns the previous limit.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the system can change only a process's own limits.
    fn set_limit_of(&self, _pid: u32, _resource: Resource, _limit: Rlimit) -> io::Result<Rlimit> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The process at the other end of a connected Unix socket.
    fn peer_of(&self, socket: BorrowedFd<'_>) -> io::Result<SocketPeer>;

    /// Makes this process the parent of its orphaned descendants.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the system cannot do this.
    fn adopt_orphans(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// The numbers of the signals that this process ignores. Empty if the system does not say this.
    fn ignored_signals(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Renames `from` to `to` in the directory, unless `to` exists.
    ///
    /// # Errors
    ///
    /// `EEXIST` if `to` exists. `EINVAL` or the kind `Unsupported` if the system or the file system
    /// cannot check and rename in one step.
    fn rename_if_absent(&self, _directory: BorrowedFd<'_>, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Exchanges the names of two files in the directory in one step.
    fn exchange_names(&self, _directory: BorrowedFd<'_>, _first: &str, _second: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Flushes the entries of a directory to the disk. For a file, `File::sync_all` does this.
    fn sync_directory(&self, directory: BorrowedFd<'_>) -> io::Result<()> {
        Ok(rustix::fs::fsync(directory)?)
    }

    /// Takes a write lease on a file that is open for reading and writing. `None` if another
    /// descriptor of the file is open, or if the system has no write leases.
    fn take_write_lease<'f>(&self, _file: &'f File) -> Option<WriteLease<'f>> {
        None
    }

    /// Whether the directory's file system has multigrain timestamps: a change of a file after a
    /// `stat` always gives the file a new change time.
    fn has_multigrain_timestamps(&self, _directory: BorrowedFd<'_>) -> bool {
        false
    }

    /// Whether an access control list can let other users write to the file. True if it is unknown.
    fn has_access_control_list(&self, _file: BorrowedFd<'_>) -> bool {
        true
    }

    /// Whether a file event in a watched directory names the file that has changed. With kqueue,
    /// the event may name only the directory or another file in it.
    fn file_events_name_files(&self) -> bool {
        false
    }

    /// Creates an empty file that has no name, for reading and writing.
    fn unnamed_file(&self) -> io::Result<File> {
        tempfile::tempfile()
    }

    /// The points at which file systems are mounted.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the system does not list them.
    fn mount_points(&self) -> io::Result<Vec<PathBuf>>;

    /// Starts to count the reads from a terminal. `None` if the system does not tell.
    fn watch_terminal_reads(&self, _device: &Path) -> Option<TerminalReads> {
        None
    }

    /// The path of the terminal with this device number, as in [`ProcessEntry::tty`]. `None` if the
    /// number is not that of a pseudo-terminal.
    fn terminal_path(&self, _device: u32) -> Option<PathBuf> {
        None
    }

    /// The program that copies its standard input to the clipboard of the user's desktop. `None` if
    /// the system has no such program that is always installed.
    fn clipboard_program(&self) -> Option<Command> {
        None
    }

    /// Whether programs that this process starts can read the passwords that the system stores for
    /// the logged-in user, such as those in the keychain of macOS. `None` if the system stores
    /// none, or does not say.
    fn can_read_login_passwords(&self) -> Option<bool> {
        None
    }

    /// The limits of processes and terminals that the system shows.
    fn resource_limits(&self) -> Vec<ResourceLimit> {
        Vec::new()
    }

    /// The limits of watched files that the system has.
    fn watch_limits(&self) -> Vec<WatchLimit> {
        Vec::new()
    }
}
