//! Our children. Agents without a pane: their joins outlive us all the same.
//!
//! Nothing of ours is handed to them: input and output go nowhere, the agent's output goes into its log by way
//! of its join, which also leaves our terminal's session. Their deaths are told by pidfd like those of all joins;
//! here they are only collected.

use crate::io::resource_limits::SavedLimits;
use protocol::error::ErrorReport;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Our children.
#[derive(Debug)]
pub(crate) struct Children {
    children: Vec<Child>,
    limits: SavedLimits,
}

impl Children {
    /// Nobody yet. `limits`: what they are to have.
    pub(crate) fn new(limits: SavedLimits) -> Children {
        Children { children: Vec::new(), limits }
    }

    /// Starts `argv`; the directory of `log` is made first. Gives the pid.
    pub(crate) fn start_shim(&mut self, argv: &[String], log: &Path) -> Result<u32, ErrorReport> {
        if let Some(directory) = log.parent() {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|error| ErrorReport::from_io("make", directory, &error))?;
        }
        let (program, arguments) = argv.split_first().expect("a command line of ours has a program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        failpoint::hit("headless.start");
        let child =
            command.spawn().map_err(|error| ErrorReport::from_io("start", Path::new(program), &error))?;
        failpoint::hit("headless.started");
        let pid = child.id();
        // Its agent does not begin before the green light.
        self.limits.restore_for_child(pid);
        self.children.push(child);
        Ok(pid)
    }

    /// Starts a program that tells a person something, and ends by itself. Where it can't be started, all goes on.
    pub(crate) fn run_notifier(&mut self, argv: &[String]) {
        self.reap();
        let (program, arguments) = argv.split_first().expect("a command line of ours has a program");
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // Ctrl-C in the daemon's pane is not meant for it.
        match command.process_group(0).spawn() {
            Ok(child) => self.children.push(child),
            Err(error) => tracing::warn!("cannot start {program}: {error}"),
        }
    }

    /// Collects those that have ended.
    pub(crate) fn reap(&mut self) {
        self.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}
