//! Kills the orphans of a killed shim: the processes that its agent started and that still run.
//!
//! A shim that exits normally kills these processes itself. For a shim that was killed, this module
//! finds them by the agent's token in their environment. It cannot find a process that has cleared
//! its environment (see docs/ARCHITECTURE.md). It never kills the daemon's own process, which also
//! has the token in its environment if the agent started the daemon.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Maximum number of rounds that kill orphans, and of searches in one round that stop them.
const MAX_ROUNDS: u32 = 100;
/// Maximum time for all rounds. Other jobs of the files thread wait meanwhile.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long the environment of a process is read again while it is empty. On a busy machine a
/// process can be in `exec` for some milliseconds. The time is limited because a process can be
/// started without any variable.
const EXEC_TIMEOUT: Duration = Duration::from_millis(50);

/// Kills every process that has this token in its environment, except the daemon.
pub(crate) fn kill_orphans(token: &str) {
    let marker = format!("TEAMD_TOKEN={token}");
    let deadline = Instant::now() + TIMEOUT;
    // An orphan can start a child during a search, so the search is repeated until it finds none.
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < deadline) {
        stop_all(&marker, deadline);
        if signal_all(&marker, Signal::KILL).is_empty() {
            return;
        }
    }
    tracing::warn!("cannot kill all orphans of a killed shim within {MAX_ROUNDS} rounds or {TIMEOUT:?}");
}

/// Stops all orphans with SIGSTOP, before the caller kills them.
///
/// A stopped process cannot start a child. It also still counts against the limit of processes, so
/// that other orphans cannot start more children than before.
fn stop_all(marker: &str, deadline: Instant) {
    let mut stopped = HashSet::new();
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < deadline) {
        let found = signal_all(marker, Signal::STOP);
        if found.into_iter().filter(|pid| stopped.insert(*pid)).count() == 0 {
            return;
        }
    }
}

/// Sends a signal to every process with the environment entry `marker`. Returns their pids.
fn signal_all(marker: &str, signal: Signal) -> Vec<i32> {
    let signalled = find_by_token(marker).filter(|(_, pidfd)| pidfd_send_signal(pidfd, signal).is_ok());
    signalled.map(|(pid, _)| pid).collect()
}

/// The pids and pidfds of all processes with the environment entry `marker`, except the daemon.
fn find_by_token(marker: &str) -> impl Iterator<Item = (i32, OwnedFd)> {
    let pids = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let others = pids.filter(|pid| pid.unsigned_abs() != std::process::id());
    others.filter_map(|pid| Some((pid, open_if_has_token(pid, marker)?)))
}

/// Opens a pidfd of the process `pid`, if the environment of that process contains the entry
/// `marker`.
///
/// The pidfd is opened before the environment is read. So the two cannot belong to different
/// processes, even if the kernel reuses the pid.
fn open_if_has_token(pid: i32, marker: &str) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    read_environ(pid)?.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes()).then_some(pidfd)
}

/// Reads the environment of a process: entries separated by NUL bytes. Returns `None` if the
/// process is gone, or if its environment is still empty after [`EXEC_TIMEOUT`].
///
/// During `exec` the environment of a process is empty for a moment, so an empty environment is
/// read again. Kernel threads and zombies have no executable; for these the empty environment is
/// returned at once.
fn read_environ(pid: i32) -> Option<Vec<u8>> {
    let deadline = Instant::now() + EXEC_TIMEOUT;
    loop {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        if !environ.is_empty() || std::fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return Some(environ);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_daemon_with_the_token_finds_other_processes_and_not_itself() {
        let own = std::fs::read("/proc/self/environ").unwrap();
        let marker = str::from_utf8(own.split(|byte| *byte == 0).next().unwrap()).unwrap();
        let (name, value) = marker.split_once('=').unwrap();
        // With 100 children, some searches run during a child's `exec`.
        for _ in 0..100 {
            let mut child = Command::new("sleep").arg("1000").env(name, value).spawn().unwrap();
            let found: Vec<u32> = find_by_token(marker).map(|(pid, _)| pid.unsigned_abs()).collect();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(found.contains(&child.id()) && !found.contains(&std::process::id()), "{found:?}");
        }
    }
}
