//! What the tested programs cannot do on systems other than Linux, or with the portable implementation of
//! the crate `platform`.

use crate::results::record_skip;

/// A facility of Linux that other systems lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Facility {
    /// An id of the boot. Without it, teamd notices a reboot by the start times of processes alone.
    BootId,
    /// The working directories of processes. Without them, teamd does not know who uses a worktree.
    WorkingDirectories,
    /// A change of another process's resource limits. Without it, an agent without a pane inherits
    /// the limits of the daemon.
    LimitsOfOtherProcesses,
    /// The numbers of processes, terminals and watches that a system allows.
    SystemLimits,
    /// A process that becomes the parent of its orphaned descendants. Without it, each process with
    /// the environment of an agent counts as a descendant of the agent's shim, and ends with it.
    Subreaper,
    /// The reads from a terminal. Without them, a hook does not notice that a person types.
    TerminalReads,
    /// File events that name the changed file. Without them, the daemon does not know when it has seen all
    /// changes of tasks, and a claim reads all tasks. Of two changes of a task within 100 ms, it sees only the second.
    NamesInFileEvents,
    /// The start times of processes to a fraction of a second. Without them, a process that gets the pid of
    /// another within the same second is taken for it.
    ExactStartTimes,
    /// The entry of a process without a run of `ps`. Without it, a new daemon may take longer to find fifty
    /// agents than a client waits.
    FastProcessTable,
    /// The list of mounts. Without it, a mount from the same device is not found.
    MountTable,
    /// The process that holds a lock on a file.
    LockHolders,
    /// The paths of the programs that processes run, and of the files that they have open.
    OpenFiles,
}

impl Facility {
    /// Whether the crate `platform` has the facility on macOS and FreeBSD.
    fn is_on_bsd(self) -> bool {
        matches!(
            self,
            Facility::BootId
                | Facility::WorkingDirectories
                | Facility::FastProcessTable
                | Facility::ExactStartTimes
        )
    }
}

/// Whether the caller must skip its test, or the part that needs the facility. This is so if
/// `PLATFORM_OF_TESTED_PROGRAMS` selects the portable implementation, or if this system lacks the
/// facility. The skip is recorded.
pub fn skips_without(facility: Facility) -> bool {
    let is_portable = platform_of_tested_programs().is_some_and(|name| name == "posix");
    let is_missing = is_portable || !(cfg!(target_os = "linux") || facility.is_on_bsd());
    if is_missing {
        let test = std::thread::current().name().unwrap_or_default().replace("::", "-");
        record_skip(&format!("without-facility-{test}"), &format!("there is no {facility:?}"));
    }
    is_missing
}

/// The implementation that the tested programs use. `None` for that of the system. The harness itself always
/// uses that of the system.
pub(crate) fn platform_of_tested_programs() -> Option<String> {
    std::env::var("PLATFORM_OF_TESTED_PROGRAMS").ok()
}
