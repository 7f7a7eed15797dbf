//! Probes the system: stopped processes, servers that do not answer, holders of locks, full disks.

use nix::sys::statvfs::statvfs;
use platform::ProcessEntry;
use platform::process_tree::descendants_of;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a server may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// A disk with less free space than this counts as full. Changing even one byte of a file needs
/// free space, because the whole file is written anew before it replaces the old one.
const MIN_FREE_BYTES: u64 = 64 << 10;

/// The state of a server, found by its socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerState {
    /// There is no server, or its socket is not known.
    Unknown,
    /// The server answers.
    Responsive,
    /// No process listens on the socket.
    NotListening(PathBuf),
    /// The server does not answer, or has not been asked yet.
    Unresponsive {
        /// `None` if the process is not known.
        pid: Option<u32>,
        /// Whether a signal has stopped the process.
        stopped: bool,
    },
}

/// The free space of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// A directory on the disk.
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    /// Number of files that can still be created. `None` if the file system has no limit.
    pub(super) files: Option<u64>,
}

/// Tests whether the tmux server with this socket answers a command. It is not enough to connect to
/// the socket, because the kernel also accepts connections for a stopped server.
pub(super) fn probe_tmux(socket: &Path) -> ServerState {
    match probe_socket(socket) {
        ServerState::Unresponsive { stopped: false, .. } if tmux_responds(socket) => ServerState::Responsive,
        state => state,
    }
}

fn tmux_responds(socket: &Path) -> bool {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).args(["display-message", "-p", "ok"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let reply = with_timeout(child.stdout.take(), |stdout| std::io::read_to_string(stdout?).ok());
    // The tmux client may wait for the server forever.
    child.kill().ok();
    child.wait().ok();
    reply.flatten().is_some_and(|reply| reply == "ok\n")
}

/// Connects to the socket to find the server that listens on it. The result `Unresponsive` only
/// means that a server accepts the connection, or that connecting takes too long: this function
/// sends no request. So the result is never `Responsive`.
pub(super) fn probe_socket(socket: &Path) -> ServerState {
    let connected = with_timeout(socket.to_owned(), |socket: PathBuf| {
        let stream = UnixStream::connect(socket).ok()?;
        Some(platform::system().peer_of(stream.as_fd()).ok().and_then(|peer| peer.pid))
    });
    match connected {
        Some(None) => ServerState::NotListening(socket.to_owned()),
        Some(Some(Some(pid))) => {
            let stopped = ProcessEntry::read(pid).is_some_and(|process| process.stopped);
            ServerState::Unresponsive { pid: Some(pid), stopped }
        }
        Some(Some(None)) | None => ServerState::Unresponsive { pid: None, stopped: false },
    }
}

/// Runs `action` with `argument` in a thread and returns its result. Returns `None` if the action
/// takes longer than [`PROBE_TIMEOUT`]. The thread then stays until teamctl exits.
fn with_timeout<A: Send + 'static, T: Send + 'static>(
    argument: A,
    action: impl FnOnce(A) -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(action(argument)).ok());
    receiver.recv_timeout(PROBE_TIMEOUT).ok()
}

/// A process of a member that a signal or a debugger has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoppedProcess {
    pub(super) pid: u32,
    /// The name of its program.
    pub(super) name: String,
    /// Whether the process is the shim, the member's program, or the process that runs a turn. If
    /// one of these is stopped, the member cannot work. Other processes of the member may be
    /// stopped for a good reason.
    pub(super) is_essential: bool,
}

/// Returns the processes of a member that are stopped, for example by SIGSTOP. The shim counts as
/// one of the member's processes. `agent` is the process id of the member's program. `table` has
/// all processes of the system.
pub(super) fn stopped_processes(table: &[ProcessEntry], agent: u32) -> Vec<StoppedProcess> {
    let runs =
        |pid: u32, program: &str| platform::system().program_name(pid).is_some_and(|name| name == program);
    let parent = ProcessEntry::read(agent).map(|process| process.parent);
    let shim_or_agent = parent.filter(|pid| runs(*pid, "teamd-shim")).unwrap_or(agent);
    let is_essential = |process: &ProcessEntry| {
        [process.pid, process.parent].contains(&shim_or_agent) || runs(process.parent, "teamd-acp")
    };
    let stopped = descendants_of(table, &[shim_or_agent]).into_iter().filter(|process| process.stopped);
    stopped
        .map(|process| StoppedProcess {
            pid: process.pid,
            name: platform::system().program_name(process.pid).unwrap_or_default(),
            is_essential: is_essential(&process),
        })
        .collect()
}

/// A process that holds a lock.
#[derive(Debug, Clone)]
pub(super) struct LockHolder {
    pub(super) pid: u32,
    /// The name of its program.
    name: String,
    /// Whether a signal has stopped the process.
    is_stopped: bool,
}

impl LockHolder {
    /// Finds the process that holds a flock on the file with this inode. Returns `None` if the
    /// system lists no flock for the inode. Claude Code is never found, because it locks its files
    /// without flock.
    pub(super) fn find(inode: u64) -> Option<LockHolder> {
        let pid = platform::system().lock_holder(inode)?;
        let is_stopped = ProcessEntry::read(pid).is_some_and(|process| process.stopped);
        Some(LockHolder { pid, name: platform::system().program_name(pid).unwrap_or_default(), is_stopped })
    }

    /// Describes the holder for people.
    pub(super) fn description(&self) -> String {
        let stopped = if self.is_stopped { ", and is stopped" } else { "" };
        format!("process {} ({}) holds it{stopped}", self.pid, self.name)
    }
}

/// The full disks among those of the directories.
pub(super) fn full_disks(directories: &[PathBuf]) -> Vec<FreeSpace> {
    directories.iter().filter_map(|path| free_space(path)).filter(FreeSpace::is_full).collect()
}

impl FreeSpace {
    fn is_full(&self) -> bool {
        self.bytes < MIN_FREE_BYTES || self.files == Some(0)
    }
}

#[allow(clippy::useless_conversion, clippy::unnecessary_cast, reason = "the widths differ between systems")]
fn free_space(path: &Path) -> Option<FreeSpace> {
    let statistics = statvfs(path).ok()?;
    let bytes = (statistics.blocks_available() as u64).saturating_mul(statistics.fragment_size() as u64);
    let files = (statistics.files() > 0).then_some(statistics.files_available() as u64);
    Some(FreeSpace { path: path.to_owned(), bytes, files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_of_an_unresponsive_tmux_leaves_no_client() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("tmux");
        // The listener accepts no connection, so the tmux client waits.
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(
            probe_tmux(&socket),
            ServerState::Unresponsive { pid: Some(std::process::id()), stopped: false }
        );
        let is_client = |process: &ProcessEntry| {
            let arguments = platform::system().command_line(process.pid);
            let arguments = String::from_utf8_lossy(&arguments);
            arguments.contains(&*socket.to_string_lossy())
        };
        assert!(
            !descendants_of(&platform::system().processes().unwrap(), &[std::process::id()])
                .iter()
                .any(is_client)
        );
        let missing = dir.path().join("gone");
        assert_eq!(probe_tmux(&missing), ServerState::NotListening(missing.clone()));
    }
}
