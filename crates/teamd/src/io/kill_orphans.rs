//! Kills the orphans of a killed shim: the agent and the processes that the agent started, if they
//! still run.
//!
//! A shim that exits normally kills these processes itself. If the shim was killed, the daemon
//! finds them by the agent's token, which is in the environment of each of them. It cannot find a
//! process that has cleared its environment (see docs/ARCHITECTURE.md). If an agent has started the
//! daemon, the daemon has the agent's token too. So this module never kills the daemon's own
//! process.

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
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
fn signal_all(marker: &str, signal: Signal) -> Vec<i32> {
    let found = find_by_token(marker, Instant::now() + EXEC_TIMEOUT).into_iter();
    let signalled = found.filter(|(_, pidfd)| pidfd_send_signal(pidfd, signal).is_ok());
    signalled.map(|(pid, _)| pid).collect()
}

/// Returns the pids and pidfds of all processes with the environment entry `marker`, except the
/// daemon.
///
/// While a process calls `exec`, its environment reads as empty or incomplete. So this function
/// tries again to read it, until `deadline`. Before it tries again, it reads the environments of
/// all other processes, because an `exec` may take long.
fn find_by_token(marker: &str, deadline: Instant) -> Vec<(i32, OwnedFd)> {
    let pids = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let mut unread: Vec<i32> = pids.filter(|pid| pid.unsigned_abs() != std::process::id()).collect();
    let mut found = Vec::new();
    loop {
        unread.retain(|pid| match open_if_has_token(*pid, marker) {
            Ok(pidfd) => {
                found.extend(pidfd.map(|pidfd| (*pid, pidfd)));
                false
            }
            Err(Unreadable) => true,
        });
        if unread.is_empty() || Instant::now() >= deadline {
            return found;
        }
        std::thread::yield_now();
    }
}

/// The environment of a process cannot be read now: the process calls `exec`, or the daemon has no free
/// descriptor.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

/// Opens a pidfd of the process `pid`, if the environment of that process contains the entry
/// `marker`.
///
/// The pidfd is opened before the environment is read. So the two cannot belong to different
/// processes, even if the kernel reuses the pid.
fn open_if_has_token(pid: i32, marker: &str) -> Result<Option<OwnedFd>, Unreadable> {
    let Some(pid_of_process) = Pid::from_raw(pid) else { return Ok(None) };
    match pidfd_open(pid_of_process, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(has_entry(pid, marker.as_bytes())?.then_some(pidfd)),
        Err(Errno::SRCH) => Ok(None),
        Err(_) => Err(Unreadable),
    }
}

/// Whether the environment of a process contains the entry `marker`. False if the process is gone, or if
/// this user may not read its environment.
///
/// To be sure that an environment without the entry was read completely, compares its length with
/// the length in /proc/PID/stat. Kernel threads and zombies have no executable and no environment.
///
/// # Errors
///
/// If the environment could not be read, or not completely.
fn has_entry(pid: i32, marker: &[u8]) -> Result<bool, Unreadable> {
    let environ = match std::fs::read(format!("/proc/{pid}/environ")) {
        Ok(environ) => environ,
        Err(error) => return if is_final(&error) { Ok(false) } else { Err(Unreadable) },
    };
    if environ.split(|byte| *byte == 0).any(|entry| entry == marker) {
        return Ok(true);
    }
    let has_executable = std::fs::read_link(format!("/proc/{pid}/exe")).is_ok();
    let is_whole = !has_executable || environ_length(pid) == Some(environ.len());
    if is_whole { Ok(false) } else { Err(Unreadable) }
}

/// Whether the environment can never be read: the process is gone, or this user may not read it.
fn is_final(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH | Errno::ACCESS | Errno::PERM))
}

/// The length of a process's environment in bytes. In `/proc/PID/stat`, field 50 is the address of
/// its start and field 51 that of its end (proc_pid_stat(5)). `None` while the process calls
/// `exec`, because the kernel has not set the end yet.
fn environ_length(pid: i32) -> Option<usize> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // Field 2, the name, can contain spaces and ends with the last `)`. Field 3 is the first after it.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(50 - 3);
    let mut next = || fields.next()?.parse::<usize>().ok();
    let (start, end) = (next()?, next()?);
    if end == 0 { None } else { end.checked_sub(start) }
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
            let found = find_by_token(marker, deadline).into_iter().map(|(pid, _)| pid.unsigned_abs());
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

    #[test]
    fn process_without_variables_is_not_waited_for() {
        let mut child = Command::new("sleep").arg("1000").env_clear().spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        let pid = child.id().cast_signed();
        let found = loop {
            match has_entry(pid, b"A=b") {
                Err(Unreadable) if Instant::now() < deadline => std::thread::yield_now(),
                found => break found,
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, Ok(false));
    }
}
