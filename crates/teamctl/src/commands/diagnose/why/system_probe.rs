//! What only the machine tells: stopped processes, servers that don't answer, disks without room.

use client::process_table::{ProcessStat, descendants_of, program_name};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::sys::statvfs::statvfs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a server may take to answer.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Less than that is no room: files of ours are replaced by writing them anew.
const MIN_FREE_BYTES: u64 = 64 << 10;

/// Who serves a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerState {
    /// There is none to ask, or it is not known which.
    Unknown,
    Responsive,
    /// Nobody listens there.
    NotListening(PathBuf),
    /// Its process, where that is known, and whether a signal has stopped it.
    Unresponsive {
        pid: Option<u32>,
        stopped: bool,
    },
}

/// A disk that is full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// A directory on it.
    pub(super) path: PathBuf,
    /// Bytes that are left.
    pub(super) bytes: u64,
    /// Files that can be made yet; none where it does not count them.
    pub(super) files: Option<u64>,
}

/// Whether the tmux server of that socket answers. A server that is stopped still takes connections.
pub(super) fn probe_tmux(socket: &Path) -> ServerState {
    match probe_socket(socket) {
        ServerState::Unresponsive { stopped: false, .. } if tmux_responds(socket) => ServerState::Responsive,
        found => found,
    }
}

/// The tmux that asks is ended where it hangs.
fn tmux_responds(socket: &Path) -> bool {
    let mut command = Command::new("tmux");
    command.arg("-S").arg(socket).args(["display-message", "-p", "ok"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let said = with_timeout(child.stdout.take(), |stdout| std::io::read_to_string(stdout?).ok());
    child.kill().ok();
    child.wait().ok();
    said.flatten().is_some_and(|said| said == "ok\n")
}

/// Who listens at that socket, for one of which it is not known yet whether it answers.
pub(super) fn probe_socket(socket: &Path) -> ServerState {
    let found = with_timeout(socket.to_owned(), |socket: PathBuf| match UnixStream::connect(socket) {
        Ok(stream) => {
            getsockopt(&stream, PeerCredentials).map(|peer| peer.pid().unsigned_abs()).map_err(|_| true)
        }
        Err(_) => Err(false),
    });
    match found {
        Some(Ok(pid)) => {
            let stopped = ProcessStat::read(pid).is_some_and(|process| process.stopped);
            ServerState::Unresponsive { pid: Some(pid), stopped }
        }
        Some(Err(false)) => ServerState::NotListening(socket.to_owned()),
        Some(Err(true)) | None => ServerState::Unresponsive { pid: None, stopped: false },
    }
}

/// What that came to; none where it hangs. Its thread ends with this process.
fn with_timeout<A: Send + 'static, T: Send + 'static>(
    whom: A,
    ask: impl FnOnce(A) -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = channel();
    std::thread::spawn(move || tell.send(ask(whom)).ok());
    told.recv_timeout(PROBE_TIMEOUT).ok()
}

/// A process that is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoppedProcess {
    pub(super) pid: u32,
    pub(super) name: String,
    /// The member can't go on without it: its first process, its program, or the one of its turn. What those have
    /// started may rest there for good.
    pub(super) is_essential: bool,
}

/// Of an agent's processes, its first one among them, those that are stopped in this table.
pub(super) fn stopped_processes(table: &[ProcessStat], agent: u32) -> Vec<StoppedProcess> {
    let is = |pid: u32, program: &str| program_name(pid).is_some_and(|name| name == program);
    let first = ProcessStat::read(agent).map(|process| process.parent).filter(|pid| is(*pid, "teamd-shim"));
    let first = first.unwrap_or(agent);
    let carries = |process: &ProcessStat| {
        [process.pid, process.parent].contains(&first) || is(process.parent, "teamd-acp")
    };
    let stopped = descendants_of(table, &[first]).into_iter().filter(|process| process.stopped);
    stopped
        .map(|process| StoppedProcess {
            pid: process.pid,
            name: program_name(process.pid).unwrap_or_default(),
            is_essential: carries(&process),
        })
        .collect()
}

/// Who of ours has a grip on the lock of that inode, as the kernel's table says, and that in words.
pub(super) fn lock_holder(inode: u64) -> Option<(u32, String)> {
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    let pid = table.lines().find_map(|line| holder_in_line(line, inode))?;
    let stopped = ProcessStat::read(pid).is_some_and(|process| process.stopped);
    let how = if stopped { ", and is stopped" } else { "" };
    Some((pid, format!("process {pid} ({}) holds it{how}", program_name(pid).unwrap_or_default())))
}

/// A line is `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`.
fn holder_in_line(line: &str, inode: u64) -> Option<u32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let of = fields.get(5)?.rsplit(':').next()?;
    let is_it = fields.get(1) == Some(&"FLOCK") && of.parse() == Ok(inode);
    is_it.then(|| fields.get(4)?.parse().ok())?
}

/// Those of the directories whose disks have no room.
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
    let found = statvfs(path).ok()?;
    let bytes = (found.blocks_available() as u64).saturating_mul(found.fragment_size() as u64);
    let files = (found.files() > 0).then_some(found.files_available() as u64);
    Some(FreeSpace { path: path.to_owned(), bytes, files })
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::process_table::all_processes;

    #[test]
    fn whoever_asks_a_silent_tmux_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("tmux");
        let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        assert_eq!(
            probe_tmux(&socket),
            ServerState::Unresponsive { pid: Some(std::process::id()), stopped: false }
        );
        let asks = |process: &ProcessStat| {
            let words = std::fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
            words.contains(&*socket.to_string_lossy())
        };
        assert!(!descendants_of(&all_processes(), &[std::process::id()]).iter().any(asks));
        let gone = dir.path().join("gone");
        assert_eq!(probe_tmux(&gone), ServerState::NotListening(gone.clone()));
    }
}
