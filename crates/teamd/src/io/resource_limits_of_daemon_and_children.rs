//! Raises the daemon's own resource limits, and restores the original limits for its child
//! processes. So an agent has the same limits as if it were started without the daemon.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The resource limits with which the daemon was started.
#[derive(Debug)]
pub(crate) struct SavedLimits([(Resource, Rlimit); 2]);

impl SavedLimits {
    /// Raises the daemon's limit of open files to the hard limit and forbids core dumps. Returns
    /// the original limits.
    ///
    /// The daemon needs three descriptors per agent (connection, wake socket, process handle), and common
    /// soft limits are low. A core dump would contain the tokens and environments of all agents.
    pub(crate) fn raise_for_daemon() -> SavedLimits {
        let resources = [Resource::Nofile, Resource::Core];
        let limits = SavedLimits(resources.map(|resource| (resource, getrlimit(resource))));
        let [(files, old_files), (core, old_core)] = limits.0;
        set_limit(files, Rlimit { current: old_files.maximum, ..old_files });
        set_limit(core, Rlimit { current: Some(0), ..old_core });
        limits
    }

    /// Sets the original limits for the daemon's child process with the pid `child`. The caller
    /// calls this function right after it has started the process.
    pub(crate) fn restore_for_child(&self, child: u32) {
        for (resource, limit) in self.0 {
            if let Err(error) = platform::system().set_limit_of(child, resource, limit) {
                tracing::debug!("cannot set limits of process {child}: {error}");
            }
        }
    }
}

fn set_limit(resource: Resource, limit: Rlimit) {
    setrlimit(resource, limit).unwrap_or_else(|errno| tracing::warn!("cannot set a limit: {errno}"));
}
