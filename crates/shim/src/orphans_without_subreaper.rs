//! Finds orphans on systems where the shim cannot become the parent of its orphaned descendants, such
//! as macOS.
//!
//! An orphan keeps its session and its environment. So a process counts as a descendant if it is in a
//! session of a known descendant, or if `TEAMD_SPAWN` in its environment names the shim's spawn. An
//! orphan escapes if it has left its session and the system hides its environment.

use platform::{ProcessEntry, find_by_environment};
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// How the agent's orphans are recognized. Unset if the system makes the shim the parent of orphans.
static ORPHAN_MARKS: OnceLock<OrphanMarks> = OnceLock::new();

struct OrphanMarks {
    /// The sessions of the agent's processes.
    sessions: Mutex<BTreeSet<u32>>,
    /// The entry that each process of the agent has in its environment.
    environment_entry: String,
}

/// Starts to remember the sessions of the agent. The first one is the shim's own, if the shim leads it.
pub(crate) fn start_tracking(spawn: &str) {
    let own_pid = std::process::id();
    let own_session = nix::unistd::getsid(None).map(|session| session.as_raw().unsigned_abs());
    ORPHAN_MARKS.get_or_init(|| OrphanMarks {
        sessions: Mutex::new(own_session.into_iter().filter(|session| *session == own_pid).collect()),
        environment_entry: format!("TEAMD_SPAWN={spawn}"),
    });
}

pub(crate) fn is_tracking() -> bool {
    ORPHAN_MARKS.get().is_some()
}

/// Remembers the session that a new child leads.
pub(crate) fn track_session(leader: u32) {
    if let Some(marks) = ORPHAN_MARKS.get() {
        marks.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(leader);
    }
}

/// Remembers the sessions of `descendants`, and returns the orphans. `exempt` and their descendants are
/// left out. Empty if the system makes the shim the parent of orphans.
pub(crate) fn find_orphans(descendants: &[ProcessEntry], exempt: &[ProcessEntry]) -> Vec<ProcessEntry> {
    let Some(marks) = ORPHAN_MARKS.get() else { return Vec::new() };
    let mut sessions = marks.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.extend(descendants.iter().map(|process| process.session).filter(|session| *session != 0));
    let system = platform::system();
    let table = system.processes().unwrap_or_default();
    let exempt: Vec<u32> = exempt.iter().map(|process| process.pid).collect();
    let exempt = platform::process_tree::descendants_of(&table, &exempt);
    let own_pid = std::process::id();
    let is_orphan = |process: &ProcessEntry| {
        process.pid != own_pid
            && !process.zombie
            && !exempt.iter().chain(descendants).any(|other| other.is_same(process))
    };
    let mut orphans = find_by_environment(system, &marks.environment_entry, Instant::now());
    orphans.extend(table.iter().filter(|process| sessions.contains(&process.session)));
    orphans.retain(is_orphan);
    orphans.sort_unstable_by_key(|process| process.pid);
    orphans.dedup_by(|first, second| first.is_same(second));
    orphans
}
