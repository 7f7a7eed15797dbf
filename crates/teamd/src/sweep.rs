//! The orphans of a join that was killed: found by the token in their environment, ended by pidfd.
//!
//! join itself leaves none; this is for the one case in which it can't. A child that has cleaned its
//! environment is out of reach, and docs/ARCHITECTURE.md says so.

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Kills every process that carries this token.
pub(crate) fn sweep(token: &str) {
    let marker = format!("TEAMD_TOKEN={token}");
    // An orphan may have started a child while we looked: again, until a look finds none.
    for _ in 0..100 {
        if kill_marked(&marker) == 0 {
            return;
        }
    }
    tracing::warn!("cannot end all orphans of a killed join within 100 rounds");
}

fn kill_marked(marker: &str) -> usize {
    let pids = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| kill_if_marked(*pid, marker).is_some()).count()
}

/// The pidfd is opened before the look, so that the number cannot come to mean another process between.
fn kill_if_marked(pid: i32, marker: &str) -> Option<()> {
    let fd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let marked = environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes());
    marked.then(|| pidfd_send_signal(&fd, Signal::KILL).ok())?
}
