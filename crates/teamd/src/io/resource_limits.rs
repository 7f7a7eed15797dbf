//! What the daemon asks of the kernel for itself, and takes back for its children: an agent is to find the limits that
//! it would have had without us.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// The limits as they were.
#[derive(Debug)]
pub(crate) struct SavedLimits([(Resource, Rlimit); 2]);

impl SavedLimits {
    /// From now on there are as many descriptors as may be: half-open connections, wake lines and pidfds are three for
    /// each agent, and common limits are low. And there is no core dump, which would hold every agent's token and
    /// environment.
    pub(crate) fn raise_for_daemon() -> SavedLimits {
        let limits = SavedLimits([Resource::Nofile, Resource::Core].map(|of| (of, getrlimit(of))));
        let [(files, old_files), (core, old_core)] = limits.0;
        set(files, Rlimit { current: old_files.maximum, ..old_files });
        set(core, Rlimit { current: Some(0), ..old_core });
        limits
    }

    /// For a child of ours that has yet to do anything that they matter for.
    pub(crate) fn restore_for_child(&self, child: u32) {
        // Without a number it would be our own.
        let Some(pid) = i32::try_from(child).ok().and_then(Pid::from_raw) else { return };
        for (resource, limit) in self.0 {
            if let Err(errno) = prlimit(Some(pid), resource, limit) {
                tracing::debug!("cannot set limits of process {child}: {errno}");
            }
        }
    }
}

fn set(resource: Resource, limit: Rlimit) {
    setrlimit(resource, limit).unwrap_or_else(|errno| tracing::warn!("cannot set a limit: {errno}"));
}
