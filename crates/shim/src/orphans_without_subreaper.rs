//! Finds orphans on systems where the shim cannot become the parent of its orphaned descendants,
//! such as macOS.
//!
//! When the parent of a process exits, the process keeps its process session and its environment.
//! So a process counts as a descendant if it is in the process session of a known descendant. It
//! also counts if an entry of its environment, such as `TEAMD_SPAWN`, names the shim's spawn. An
//! orphan escapes if it leads a process session of its own, and the system hides its environment.

use platform::{ProcessEntry, find_by_environment};
use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// How the agent's orphans are recognized. Not used on systems where the shim is a subreaper and so
/// becomes the parent of orphans.
static ORPHAN_CRITERIA: OnceLock<OrphanCriteria> = OnceLock::new();

struct OrphanCriteria {
    /// The ids of the process sessions in which the agent's processes run.
    sessions: Mutex<BTreeSet<u32>>,
    /// The entry that each process of the agent has in its environment.
    environment_entry: String,
}

/// Starts to remember the process sessions of the agent. If the shim leads a process session, this
/// session is the first one. `environment_entry` is an environment variable with its value that
/// every process of the agent inherits.
pub(crate) fn start_tracking(environment_entry: String) {
    let own_session = session_of_parent().is_none().then(std::process::id);
    ORPHAN_CRITERIA.get_or_init(|| OrphanCriteria {
        sessions: Mutex::new(own_session.into_iter().collect()),
        environment_entry,
    });
}

pub(crate) fn is_tracking() -> bool {
    ORPHAN_CRITERIA.get().is_some()
}

/// Remembers the process session that a new child leads.
pub(crate) fn track_session(leader: u32) {
    if let Some(criteria) = ORPHAN_CRITERIA.get() {
        criteria.sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(leader);
    }
}

/// Remembers the process sessions of `descendants`, and returns the orphans, except the processes
/// in `exempt` and their descendants. Returns none on systems where the shim is a subreaper.
///
/// # Errors
///
/// If the process table cannot be read.
pub(crate) fn find_orphans(
    descendants: &[ProcessEntry],
    exempt: &[ProcessEntry],
) -> io::Result<Vec<ProcessEntry>> {
    let Some(criteria) = ORPHAN_CRITERIA.get() else { return Ok(Vec::new()) };
    let system = platform::system();
    // The process table is read last. So it shows the parent of each process that was found by its
    // environment, and the descendants of an exempt process can be told from orphans.
    let with_environment = find_by_environment(system, &criteria.environment_entry, Instant::now())?;
    let table = system.processes()?;
    let mut sessions = criteria.sessions.lock().unwrap_or_else(PoisonError::into_inner);
    let foreign_session = session_of_parent();
    sessions.extend(descendants.iter().map(|process| process.session).filter(|session| *session != 0));
    // A session without processes has ended. Its id may become that of a foreign session.
    sessions.retain(|session| {
        Some(*session) != foreign_session && table.iter().any(|process| process.session == *session)
    });
    let exempt: Vec<u32> = exempt.iter().map(|process| process.pid).collect();
    let exempt = platform::process_tree::descendants_of(&table, &exempt);
    let own_pid = std::process::id();
    let is_orphan = |process: &ProcessEntry| {
        process.pid != own_pid
            && !process.zombie
            && !exempt.iter().chain(descendants).any(|other| other.is_same(process))
    };
    let mut orphans = with_environment;
    orphans.extend(table.iter().filter(|process| sessions.contains(&process.session)));
    orphans.retain(is_orphan);
    orphans.sort_unstable_by_key(|process| process.pid);
    orphans.dedup_by(|first, second| first.is_same(second));
    Ok(orphans)
}

/// The session in which the shim was started, unless the shim leads it.
fn session_of_parent() -> Option<u32> {
    let own_session = nix::unistd::getsid(None).ok()?.as_raw().unsigned_abs();
    (own_session != std::process::id()).then_some(own_session)
}
