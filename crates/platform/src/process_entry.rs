//! What a process table says of a process.

/// A process in the process table. Pid and start time together identify a process, even if pids are
/// reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessEntry {
    /// Process id.
    pub pid: u32,
    /// Process id of the parent.
    pub parent: u32,
    /// The session id. 0 if the session was created outside of this pid namespace.
    pub session: u32,
    /// Device number of the controlling terminal. 0 if there is none.
    pub tty: u32,
    /// Start time, in units of the system.
    pub start: u64,
    /// Whether all threads of the process have exited and its parent has not waited for it yet.
    pub zombie: bool,
    /// Whether a signal or a debugger has stopped the process.
    pub stopped: bool,
}

impl ProcessEntry {
    /// Whether both entries are of the same process.
    pub fn is_same(&self, other: &ProcessEntry) -> bool {
        (self.pid, self.start) == (other.pid, other.start)
    }
}

/// The boot and the pid namespace in which pids are valid. A field is `None` if the system does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PidOrigin {
    /// Id that the system has from its start to its end.
    pub boot_id: Option<String>,
    /// Id of the pid namespace.
    pub pid_namespace: Option<String>,
}

/// A process with its environment, as entries that end with a NUL. The environment is empty if the process
/// has exited, or if this user may not read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEnvironment {
    /// The process.
    pub process: ProcessEntry,
    /// The entries, or why they cannot be read.
    pub entries: Result<Vec<u8>, EnvironmentError>,
}

/// Why the environment of a process could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnvironmentError {
    /// Another attempt may succeed: the process calls `exec`, or no descriptor is free.
    Temporary,
    /// The system does not show the environments of processes.
    Unsupported,
}
