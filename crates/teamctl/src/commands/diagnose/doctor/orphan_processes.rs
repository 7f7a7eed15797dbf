//! Processes of an agent whose life is over and that no roster knows: what is left where a join was killed and the
//! daemon's state lost before it could look. Known by what every agent has in its environment.

use super::FixMode;
use super::report::DoctorReport;
use client::process_table::{ProcessStat, program_name, self_and_ancestors};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::path::Path;

/// One of them. The pidfd was opened before it was looked at, so that its number cannot come to mean another.
struct OrphanProcess {
    pid: u32,
    name: String,
    spawn: String,
    pidfd: OwnedFd,
}

/// Only beside a daemon that answers: without one nobody says which lives go on.
pub(super) fn check(root: &Path, state: &Path, treatment: FixMode, report: &mut DoctorReport) {
    let marked = agent_processes(root);
    // After the processes: a life that has begun meanwhile is in it, since none begins that is not.
    let Some(known) = store::read_roster_file(state).map(|roster| roster.spawn_ids()) else { return };
    let orphans: Vec<OrphanProcess> =
        marked.into_iter().filter(|orphan| !known.contains(&orphan.spawn)).collect();
    if orphans.is_empty() {
        report.ok("orphans", "every process of an agent belongs to one that lives");
    }
    for orphan in orphans {
        let shown = format!("process {} ({}), of the agent's life {}", orphan.pid, orphan.name, orphan.spawn);
        if treatment == FixMode::ReportOnly {
            report.warn("orphans", shown, "nobody supervises it; to end it: teamctl doctor --fix");
            continue;
        }
        match pidfd_send_signal(&orphan.pidfd, Signal::KILL) {
            Ok(()) => report.ok("orphans", format!("{shown}, is ended")),
            Err(error) => report.warn("orphans", shown, format!("it stays: {error}")),
        }
    }
}

/// Every process with the mark of an agent of this root; not whoever calls.
fn agent_processes(root: &Path) -> Vec<OrphanProcess> {
    let own: Vec<u32> = self_and_ancestors().iter().map(|process| process.pid).collect();
    let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| !own.contains(pid)).filter_map(|pid| as_orphan(pid, root)).collect()
}

fn as_orphan(pid: u32, root: &Path) -> Option<OrphanProcess> {
    let pidfd = pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?;
    let environ = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = |name: &str| {
        let mut entries = environ.split(|byte| *byte == 0);
        entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    if value("TEAMD_ROOT")? != root.as_os_str().as_encoded_bytes() {
        return None;
    }
    let spawn = String::from_utf8(value("TEAMD_SPAWN")?.to_vec()).ok()?;
    (!is_shared_server(pid)).then_some(OrphanProcess { pid, name: program_name(pid)?, spawn, pidfd })
}

/// A tmux server that an agent started has that agent's mark for ever, and so has everything that people run in it.
fn is_shared_server(pid: u32) -> bool {
    let parent =
        |pid: &u32| ProcessStat::read(*pid).map(|process| process.parent).filter(|parent| *parent > 1);
    let mut above = std::iter::successors(Some(pid), parent).take(64);
    above
        .any(|pid| program_name(pid).is_some_and(|name| name.starts_with("tmux") || name.starts_with("team")))
}
