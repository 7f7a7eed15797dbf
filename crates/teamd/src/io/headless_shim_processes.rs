//! The shims of agents without a pane, as child processes of the daemon.
//!
//! Standard input and output of a child are `/dev/null`. The shim itself writes the agent's output
//! to a log file and calls `setsid`, so the shim outlives the daemon. [`super::process_watcher`]
//! reports when a shim exits; this module only reaps the zombie processes.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::io::check_shim_program_and_descriptors::check_shim_start;
use crate::io::mark_spawn_in_output_log::mark_spawn_in_log;
use crate::io::process_start_error::{descriptors_error, start_error};
use crate::io::resource_limits_of_daemon_and_children::SavedLimits;
use protocol::error_kind_and_report::ErrorReport;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The child processes that have not been reaped yet.
#[derive(Debug)]
pub(crate) struct HeadlessShims {
    shims: BTreeMap<SpawnId, Child>,
    limits: SavedLimits,
}

impl HeadlessShims {
    /// Returns a value without child processes. Each shim gets the resource limits `limits`.
    pub(crate) fn new(limits: SavedLimits) -> HeadlessShims {
        HeadlessShims { shims: BTreeMap::new(), limits }
    }

    /// Creates the directory of the file `log`, and starts the shim of `spawn` with the command
    /// line `argv`. Returns the shim's pid.
    ///
    /// # Panics
    ///
    /// If `argv` is empty.
    pub(crate) fn start_shim(
        &mut self,
        spawn: &SpawnId,
        argv: &[String],
        log: &Path,
    ) -> Result<u32, ErrorReport> {
        check_shim_start(argv)?;
        if let Some(directory) = log.parent() {
            let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            created.map_err(|error| ErrorReport::from_io("make", directory, &error))?;
        }
        mark_spawn_in_log(log);
        let (program, arguments) = argv.split_first().expect("the core names a program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        failpoint::hit("child.start");
        let child = command.spawn().map_err(|error| match error.kind() {
            // EAGAIN: a limit on the number of processes is reached.
            ErrorKind::WouldBlock | ErrorKind::OutOfMemory => start_error(program, &error.to_string()),
            _ if error.raw_os_error() == Some(Errno::MFILE.raw_os_error()) => descriptors_error(program),
            _ => ErrorReport::from_io("start", Path::new(program), &error),
        })?;
        failpoint::hit("child.started");
        let pid = child.id();
        // The shim inherited the raised resource limits of the daemon, so it gets the original ones
        // back. This is in time for the agent, which the shim starts only when the daemon sends
        // `StartAgent`.
        self.limits.restore_for_child(pid);
        self.shims.insert(spawn.clone(), child);
        Ok(pid)
    }

    /// Reaps the shim of `spawn`, if it has exited. Checks only this shim: with thousands of shims,
    /// a check of all of them at each exit would take too long.
    pub(crate) fn reap_shim(&mut self, spawn: &SpawnId) {
        if self.shims.get_mut(spawn).is_some_and(has_exited) {
            self.shims.remove(spawn);
        }
    }

    /// Reaps all children that have exited.
    pub(crate) fn reap(&mut self) {
        self.shims.retain(|_, child| !has_exited(child));
    }
}

/// Reaps `child` if it has exited, and returns whether it has. An error of the check counts as an
/// exit.
fn has_exited(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}
