//! The daemon's child processes: shims of agents without a pane, and the user's notify command.
//!
//! Standard input and output of a child are `/dev/null`. The shim itself writes the agent's output
//! to a log file and calls `setsid`, so the shim outlives the daemon. [`super::process_watcher`]
//! reports when a shim exits; this module only reaps the zombie processes.

use crate::io::process_start_error::start_error;
use crate::io::resource_limits::SavedLimits;
use crate::io::shim_program::check_shim_program;
use protocol::error::ErrorReport;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The child processes that have not been reaped yet.
#[derive(Debug)]
pub(crate) struct Children {
    children: Vec<Child>,
    limits: SavedLimits,
}

impl Children {
    /// Returns a value without child processes. Each shim gets the resource limits `limits`.
    pub(crate) fn new(limits: SavedLimits) -> Children {
        Children { children: Vec::new(), limits }
    }

    /// Creates the directory of the file `log`, and starts a shim with the command line `argv`.
    /// Returns the shim's pid.
    ///
    /// # Panics
    ///
    /// If `argv` is empty.
    pub(crate) fn start_shim(&mut self, argv: &[String], log: &Path) -> Result<u32, ErrorReport> {
        check_shim_program(argv)?;
        if let Some(directory) = log.parent() {
            let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            created.map_err(|error| ErrorReport::from_io("make", directory, &error))?;
        }
        let (program, arguments) = argv.split_first().expect("the core names a program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        failpoint::hit("child.start");
        let child = command.spawn().map_err(|error| match error.kind() {
            // EAGAIN: a limit of processes is reached.
            ErrorKind::WouldBlock | ErrorKind::OutOfMemory => start_error(program, &error.to_string()),
            _ => ErrorReport::from_io("start", Path::new(program), &error),
        })?;
        failpoint::hit("child.started");
        let pid = child.id();
        // The agent gets these limits too, because the shim starts it only when the daemon allows
        // it.
        self.limits.restore_for_child(pid);
        self.children.push(child);
        Ok(pid)
    }

    /// Starts the user's notify command with the command line `argv`. If the command cannot be
    /// started, the daemon only logs the error.
    ///
    /// # Panics
    ///
    /// If `argv` is empty.
    pub(crate) fn run_notifier(&mut self, argv: &[String]) {
        self.reap();
        let (program, arguments) = argv.split_first().expect("the core names a program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // In its own process group, the command gets no SIGINT from Ctrl-C in the daemon's pane.
        match command.process_group(0).spawn() {
            Ok(child) => self.children.push(child),
            Err(error) => tracing::warn!("cannot start {program}: {error}"),
        }
    }

    /// Reaps the children that have exited.
    pub(crate) fn reap(&mut self) {
        self.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}
