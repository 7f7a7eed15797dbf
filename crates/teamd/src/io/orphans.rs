//! The orphans of a join that was killed: found by the token in their environment, ended by pidfd.
//!
//! join itself leaves none; this is for the one case in which it can't. A child that has cleaned its
//! environment is out of reach, and docs/ARCHITECTURE.md says so. So is a daemon that an agent has started: it is its
//! user's, and would end itself here.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Looks for who was started meanwhile, at most.
const MAX_ROUNDS: u32 = 100;
/// And for at most this long: other work waits for us.
const TIMEOUT: Duration = Duration::from_secs(10);
/// So often a process without an environment is looked at: somebody may have started it so.
const EXEC_RETRIES: u32 = 100;

/// Kills every process that carries this token.
pub(crate) fn kill_orphans(token: &str) {
    let marker = format!("TEAMD_TOKEN={token}");
    let until = Instant::now() + TIMEOUT;
    // An orphan may have started a child while we looked: again, until a look finds none.
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < until) {
        stop(&marker, until);
        if signal_all(&marker, Signal::KILL).is_empty() {
            return;
        }
    }
    tracing::warn!("cannot end all orphans of a killed join within {MAX_ROUNDS} rounds or {TIMEOUT:?}");
}

/// Who is stopped starts no further child, and takes up its place under whatever limit there is.
fn stop(marker: &str, until: Instant) {
    let mut stopped = HashSet::new();
    for _ in (0..MAX_ROUNDS).take_while(|_| Instant::now() < until) {
        let found = signal_all(marker, Signal::STOP);
        if found.into_iter().filter(|pid| stopped.insert(*pid)).count() == 0 {
            return;
        }
    }
}

/// To everyone who is marked; their numbers.
fn signal_all(marker: &str, signal: Signal) -> Vec<i32> {
    let told = find_by_token(marker).filter(|(_, pidfd)| pidfd_send_signal(pidfd, signal).is_ok());
    told.map(|(pid, _)| pid).collect()
}

fn find_by_token(marker: &str) -> impl Iterator<Item = (i32, OwnedFd)> {
    let pids = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let others = pids.filter(|pid| pid.unsigned_abs() != std::process::id());
    others.filter_map(|pid| Some((pid, open_if_has_token(pid, marker)?)))
}

/// The pidfd is opened before the look, so that the number cannot come to mean another process between.
fn open_if_has_token(pid: i32, marker: &str) -> Option<OwnedFd> {
    let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    read_environ(pid)?.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes()).then_some(pidfd)
}

/// For an instant of its exec a process shows none: it is looked at again. What has no program, a thread of the kernel or
/// a zombie, never has any.
fn read_environ(pid: i32) -> Option<Vec<u8>> {
    for _ in 0..EXEC_RETRIES {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        if !environ.is_empty() || std::fs::read_link(format!("/proc/{pid}/exe")).is_err() {
            return Some(environ);
        }
        std::thread::yield_now();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn who_sweeps_is_not_swept_though_an_agent_has_started_it() {
        let own = std::fs::read("/proc/self/environ").unwrap();
        let mark = str::from_utf8(own.split(|byte| *byte == 0).next().unwrap()).unwrap();
        let (name, value) = mark.split_once('=').unwrap();
        // Some of them are found amid their exec.
        for _ in 0..100 {
            let mut child = Command::new("sleep").arg("1000").env(name, value).spawn().unwrap();
            let found: Vec<u32> = find_by_token(mark).map(|(pid, _)| pid.unsigned_abs()).collect();
            child.kill().unwrap();
            child.wait().unwrap();
            assert!(found.contains(&child.id()) && !found.contains(&std::process::id()), "{found:?}");
        }
    }
}
