//! The orphans of a join that was killed: found by the token in their environment, ended by pidfd.
//!
//! join itself leaves none; this is for the one case in which it can't. A child that has cleaned its
//! environment is out of reach, and docs/ARCHITECTURE.md says so.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;

/// Looks for who was started meanwhile, at most.
const ROUNDS: u32 = 100;

/// Kills every process that carries this token.
pub(crate) fn sweep(token: &str) {
    let marker = format!("TEAMD_TOKEN={token}");
    // An orphan may have started a child while we looked: again, until a look finds none.
    for _ in 0..ROUNDS {
        stop(&marker);
        if signal_marked(&marker, Signal::KILL).is_empty() {
            return;
        }
    }
    tracing::warn!("cannot end all orphans of a killed join within {ROUNDS} rounds");
}

/// Who is stopped starts no further child, and takes up its place under whatever limit there is.
fn stop(marker: &str) {
    let mut stopped = HashSet::new();
    for _ in 0..ROUNDS {
        let found = signal_marked(marker, Signal::STOP);
        if found.into_iter().filter(|pid| stopped.insert(*pid)).count() == 0 {
            return;
        }
    }
}

/// To everyone who is marked; their numbers.
fn signal_marked(marker: &str, signal: Signal) -> Vec<i32> {
    let pids = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| signal_if_marked(*pid, marker, signal).is_some()).collect()
}

/// The pidfd is opened before the look, so that the number cannot come to mean another process between.
fn signal_if_marked(pid: i32, marker: &str, signal: Signal) -> Option<()> {
    let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let marked = environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes());
    marked.then(|| pidfd_send_signal(&fd, signal).ok())?
}
