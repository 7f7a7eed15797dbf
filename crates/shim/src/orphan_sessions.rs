//! Finds orphans on systems where the shim cannot become the parent of its orphaned descendants, such
//! as macOS.
//!
//! An orphan keeps its session. So the shim remembers the sessions of its descendants, and each process
//! in one of them counts as a descendant. An orphan escapes if it has started a session of its own, and
//! its parent has exited, between two scans.

use platform::ProcessEntry;
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The sessions of the agent's processes. Unset if the system makes the shim the parent of orphans.
static SESSIONS: OnceLock<Mutex<BTreeSet<u32>>> = OnceLock::new();

/// Starts to remember sessions. The first one is the shim's own, if the shim leads it.
pub(crate) fn start_tracking() {
    let own_pid = std::process::id();
    let own_session = nix::unistd::getsid(None).map(|session| session.as_raw().unsigned_abs());
    SESSIONS
        .get_or_init(|| Mutex::new(own_session.into_iter().filter(|session| *session == own_pid).collect()));
}

pub(crate) fn is_tracking() -> bool {
    SESSIONS.get().is_some()
}

/// Remembers the session that a new child leads.
pub(crate) fn track_session(leader: u32) {
    if let Some(sessions) = SESSIONS.get() {
        sessions.lock().unwrap_or_else(PoisonError::into_inner).insert(leader);
    }
}

/// Remembers the sessions of `descendants`, and returns the orphans in all remembered sessions. `exempt` and
/// their descendants are left out. Empty if the system makes the shim the parent of orphans.
pub(crate) fn find_orphans(descendants: &[ProcessEntry], exempt: &[ProcessEntry]) -> Vec<ProcessEntry> {
    let Some(sessions) = SESSIONS.get() else { return Vec::new() };
    let mut sessions = sessions.lock().unwrap_or_else(PoisonError::into_inner);
    sessions.extend(descendants.iter().map(|process| process.session).filter(|session| *session != 0));
    let table = platform::system().processes().unwrap_or_default();
    let exempt: Vec<u32> = exempt.iter().map(|process| process.pid).collect();
    let exempt = platform::process_tree::descendants_of(&table, &exempt);
    let own_pid = std::process::id();
    let is_orphan = |process: &ProcessEntry| {
        process.pid != own_pid
            && !process.zombie
            && sessions.contains(&process.session)
            && !exempt.contains(process)
            && !descendants.iter().any(|descendant| descendant.is_same(process))
    };
    table.into_iter().filter(is_orphan).collect()
}
