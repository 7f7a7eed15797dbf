//! Kills the orphans of a killed shim: the agent and the processes that the agent started, if they
//! still run.
//!
//! A shim that exits normally kills these processes itself. If the shim was killed, the daemon
//! finds them by the agent's token, which is in the environment of each of them. It cannot find a
//! process that has cleared its environment (see docs/ARCHITECTURE.md). If an agent has started the
//! daemon, the daemon has the agent's token too. So this module never kills the daemon's own
//! process.

use platform::{EnvironmentError, ExitHandle};
use rustix::process::Signal;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Maximum number of rounds of [`kill_orphans`]. A round stops all orphans with SIGSTOP and then
/// kills them. Also the maximum number of searches in one round, which searches for orphans and
/// stops them until it finds no new one.
const MAX_ROUNDS: u32 = 100;
/// Maximum time for all rounds together. It is limited because a files thread kills the orphans,
/// and its other jobs wait.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long one search waits for processes whose environment cannot be read because they are
/// calling `exec`. An `exec` needs only microseconds of CPU time, but on a busy machine it may wait
/// for a CPU.
const EXEC_TIMEOUT: Duration = Duration::from_secs(1);

/// Kills all processes that have this token in their environment, except the daemon. Gives up after
/// [`MAX_ROUNDS`] or [`TIMEOUT`], and logs a warning.
pub(crate) fn kill_orphans(token: &str) {
    let marker = format!("TEAMD_TOKEN={token}");
    let deadline = Instant::now() + TIMEOUT;
    // An orphan can start a child during a search, so stopping and killing is repeated until a
    // search finds no orphan.
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
/// A stopped process cannot start children. It also still counts against the user's limit of
/// processes. If orphans were killed one by one instead, the others could start a new child for
/// each killed process.
fn stop_all(marker: &str, deadline: Instant) {
    let mut stopped = HashSet::new();
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < deadline) {
        let found = signal_all(marker, Signal::STOP);
        let count_before = stopped.len();
        stopped.extend(found);
        if stopped.len() == count_before {
            return;
        }
    }
}

/// Sends a signal to every process with the environment entry `marker`. Returns their pids.
fn signal_all(marker: &str, signal: Signal) -> Vec<u32> {
    let found = find_by_token(marker, Instant::now() + EXEC_TIMEOUT).into_iter();
    let signalled = found.filter(|(_, handle)| handle.send_signal(signal).is_ok());
    signalled.map(|(pid, _)| pid).collect()
}

/// Returns the pids and handles of all processes with the environment entry `marker`, except the
/// daemon.
///
/// While a process calls `exec`, its environment reads as empty or incomplete. So this function
/// tries again to read it, until `deadline`. Before it tries again, it reads the environments of
/// all other processes, because an `exec` may take long.
fn find_by_token(marker: &str, deadline: Instant) -> Vec<(u32, ExitHandle)> {
    let processes = platform::system().processes().unwrap_or_default();
    let mut unread: Vec<u32> = processes.iter().map(|process| process.pid).collect();
    unread.retain(|pid| *pid != std::process::id());
    let mut found = Vec::new();
    loop {
        unread.retain(|pid| match open_if_has_token(*pid, marker.as_bytes()) {
            Ok(handle) => {
                found.extend(handle.map(|handle| (*pid, handle)));
                false
            }
            Err(EnvironmentError::Temporary) => true,
            Err(EnvironmentError::Unsupported) => false,
        });
        if unread.is_empty() || Instant::now() >= deadline {
            return found;
        }
        std::thread::yield_now();
    }
}

/// Opens a handle of the process `pid`, if the environment of that process contains the entry
/// `marker`.
///
/// The handle is opened before the environment is read. So the two cannot belong to different
/// processes, even if the kernel reuses the pid.
fn open_if_has_token(pid: u32, marker: &[u8]) -> Result<Option<ExitHandle>, EnvironmentError> {
    let system = platform::system();
    let Some(handle) = system.open_process(pid).map_err(|_| EnvironmentError::Temporary)? else {
        return Ok(None);
    };
    let environment = system.environment(pid)?;
    let has_marker = environment.split(|byte| *byte == 0).any(|entry| entry == marker);
    Ok(has_marker.then_some(handle))
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
            let deadline = Instant::now() + Duration::from_secs(10);
            let found = find_by_token(marker, deadline).into_iter().map(|(pid, _)| pid);
            let found: Vec<u32> = found.collect();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(
                found.contains(&child.id()) && !found.contains(&std::process::id()),
                "{} {found:?}",
                child.id()
            );
        }
    }
}
