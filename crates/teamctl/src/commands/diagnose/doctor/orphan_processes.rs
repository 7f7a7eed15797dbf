//! Finds processes of agents whose spawn is in no roster. Such processes remain if a shim was
//! killed and the daemon's state directory was lost. `TEAMD_ROOT` and `TEAMD_SPAWN` in the
//! environment of a process show that the process belongs to an agent.

use super::report::DoctorReport;
use super::report_only_or_fix::FixMode;
use platform::process_tree::{self_and_ancestors, with_ancestors};
use platform::{ProcessEntry, ProcessEnvironment};
use rustix::process::Signal;
use std::io;
use std::path::Path;

/// A process with the environment of an agent.
struct OrphanProcess {
    process: ProcessEntry,
    /// The name of its program.
    name: String,
    spawn_id: String,
}

/// Checks all agent processes of this root. Called only while a daemon answers, because only a
/// running daemon keeps the roster up to date.
pub(super) fn check(root: &Path, state: &Path, mode: FixMode, report: &mut DoctorReport) {
    let processes = match agent_processes(root) {
        Ok(processes) => processes,
        Err(error) => {
            let message = format!("cannot read the processes of this machine: {error}");
            return report.warn("orphans", message, "see whether `ps -A` works");
        }
    };
    // An agent process whose spawn is not in the roster is an orphan. The daemon writes a new spawn
    // to the roster before it starts the spawn's process, and this function reads the roster after
    // the list of processes. So a process that was started just now is not taken for an orphan.
    let Some(known_spawns) = store::read_roster_file(state).map(|roster| roster.spawn_ids()) else { return };
    let orphans: Vec<OrphanProcess> =
        processes.into_iter().filter(|process| !known_spawns.contains(&process.spawn_id)).collect();
    if orphans.is_empty() {
        report.ok("orphans", "every process of an agent belongs to a running agent");
    }
    for OrphanProcess { process, name, spawn_id } in orphans {
        let description = format!("process {} ({name}), of the spawn {spawn_id}", process.pid);
        if mode == FixMode::ReportOnly {
            report.warn("orphans", description, "it has no shim; kill it with: teamctl doctor --fix");
            continue;
        }
        match platform::system().send_signal(&process, Signal::KILL) {
            Ok(()) => report.ok("orphans", format!("{description}, is ended")),
            Err(error) => report.warn("orphans", description, format!("it stays: {error}")),
        }
    }
}

/// Returns the agent processes of this root. Leaves out teamctl and its parent processes, which are
/// agent processes too if an agent has called `doctor`.
///
/// # Errors
///
/// If the process table cannot be read.
fn agent_processes(root: &Path) -> io::Result<Vec<OrphanProcess>> {
    let own_pids: Vec<u32> = self_and_ancestors().iter().map(|process| process.pid).collect();
    let mut processes = platform::system().environments()?;
    processes.retain(|found| !own_pids.contains(&found.process.pid));
    Ok(processes.into_iter().filter_map(|found| agent_process(found, root)).collect())
}

fn agent_process(found: ProcessEnvironment, root: &Path) -> Option<OrphanProcess> {
    let (process, environ) = (found.process, found.entries.ok()?);
    let value = |name: &str| {
        let mut entries = environ.split(|byte| *byte == 0);
        entries.find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    if value("TEAMD_ROOT")? != root.as_os_str().as_encoded_bytes() {
        return None;
    }
    let spawn_id = String::from_utf8(value("TEAMD_SPAWN")?.to_vec()).ok()?;
    let name = platform::system().program_name(process.pid)?;
    (!is_below_shared_server(process.pid)).then_some(OrphanProcess { process, name, spawn_id })
}

/// Whether the process or one of its parent processes is a tmux server or a program of teamd. If
/// so, the process does not count as an agent's, although it has the environment variables of an
/// agent: if an agent starts a tmux server, the server passes these variables on to everything that
/// people run in it.
fn is_below_shared_server(pid: u32) -> bool {
    let is_shared = |name: String| name.starts_with("tmux") || name.starts_with("team");
    let names = with_ancestors(pid).filter_map(|process| platform::system().program_name(process.pid));
    names.into_iter().any(is_shared)
}
