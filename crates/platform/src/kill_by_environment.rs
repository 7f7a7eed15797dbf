//! Kills the orphans of a killed shim: the agent and the processes that the agent started, if they
//! still run.
//!
//! A shim that exits normally kills these processes itself. If the shim was killed, this module
//! finds them by an entry in their environment. Every process that an agent starts inherits this
//! entry. A process that has cleared its environment is not found (see docs/ARCHITECTURE.md). The
//! calling process is never killed, even if it has the entry itself.

use crate::find_by_environment;
use crate::system;
use rustix::process::Signal;
use std::collections::HashSet;
use std::io;
use std::time::{Duration, Instant};

/// Maximum number of rounds of [`kill_by_environment`]. Each round stops all orphans with SIGSTOP,
/// and then sends them SIGKILL. To stop them, a round searches for orphans several times, until no
/// new one appears. The number of these searches has the same maximum.
const MAX_ROUNDS: u32 = 100;
/// Maximum time of [`kill_by_environment`]. Callers have other work, which waits meanwhile.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long one search waits for processes whose environment cannot be read because they are
/// calling `exec`. An `exec` needs only microseconds of CPU time, but on a busy machine it may wait
/// for a CPU.
const EXEC_TIMEOUT: Duration = Duration::from_secs(1);

/// Kills all processes of this user that have `entry`, such as `NAME=value`, in their environment,
/// except the caller. Returns whether none is left. Gives up after 10 s.
pub fn kill_by_environment(entry: &str) -> bool {
    let deadline = Instant::now() + TIMEOUT;
    // An orphan can start a child during a search. So this loop stops and kills orphans until none
    // is found.
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < deadline) {
        stop_all(entry, deadline);
        if signal_all(entry, Signal::KILL).is_ok_and(|killed| killed.is_empty()) {
            return true;
        }
    }
    false
}

/// Stops all orphans with SIGSTOP, before the caller kills them.
///
/// A stopped process cannot start a process, but a running orphan could start new ones while the
/// others are killed. At the user's limit of processes, each kill would even make room for a new
/// process. A stopped process still counts towards that limit.
fn stop_all(entry: &str, deadline: Instant) {
    let mut stopped = HashSet::new();
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < deadline) {
        let count_before = stopped.len();
        stopped.extend(signal_all(entry, Signal::STOP).unwrap_or_default());
        if stopped.len() == count_before {
            return;
        }
    }
}

/// Sends a signal to every process with the environment entry `entry`, except the caller. Returns
/// the pids of these processes.
///
/// # Errors
///
/// If the process table cannot be read.
fn signal_all(entry: &str, signal: Signal) -> io::Result<Vec<u32>> {
    let system = system();
    let mut found = find_by_environment(system, entry, Instant::now() + EXEC_TIMEOUT)?;
    found.retain(|process| process.pid != std::process::id());
    let signalled = found.iter().filter(|process| system.send_signal(process, signal).is_ok());
    Ok(signalled.map(|process| process.pid).collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    /// SIGCONT does nothing to a running process, so the parents of this test may get it, too.
    #[test]
    fn a_caller_with_the_entry_signals_other_processes_and_not_itself() {
        let (name, value) = std::env::vars().find(|(_, value)| !value.contains(char::is_whitespace)).unwrap();
        let mut child = Command::new("sleep").arg("1000").env(&name, &value).spawn().unwrap();
        let signalled = signal_all(&format!("{name}={value}"), Signal::CONT).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(signalled.contains(&child.id()) && !signalled.contains(&std::process::id()), "{signalled:?}");
    }
}
