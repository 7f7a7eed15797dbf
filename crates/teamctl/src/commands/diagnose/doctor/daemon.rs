//! Checks that the daemon answers, that it has the same version as teamctl, that its program file
//! still exists, and that it works in the current root.

use super::report::DoctorReport;
use crate::command_context::CommandContext;
use protocol::control_socket::StatusReply;
use protocol::error_kind_and_report::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns the daemon's status. `None` if the daemon does not answer.
pub(super) fn check(context: &CommandContext, report: &mut DoctorReport) -> Option<StatusReply> {
    match context.daemon_status() {
        Ok(status) => {
            check_version(&status, report);
            check_program(status.daemon.pid, report);
            return Some(status);
        }
        // Many commands work on the files alone, without a daemon.
        Err(error) if error.kind == ErrorKind::NoDaemon => {
            report.warn("daemon", error.message, error.help.unwrap_or_default());
        }
        Err(error) => report.fail_with_error("daemon", error),
    }
    None
}

/// Checks that the daemon works in this root. A daemon holds a lock on the `teams` directory of its
/// root. If the lock is not on `root/teams`, the directory with which the daemon works was moved or
/// removed.
pub(super) fn check_root(root: &Path, status: &StatusReply, report: &mut DoctorReport) {
    let (pid, root_text) = (status.daemon.pid, root.display());
    let teams = std::fs::metadata(root.join("teams")).map(|metadata| metadata.ino()).ok();
    let locked_inodes = platform::system().locked_inodes(pid).unwrap_or_default();
    // Some systems, such as containers, do not list the locks of other processes.
    if locked_inodes.is_empty() || teams.is_some_and(|teams| locked_inodes.contains(&teams)) {
        return;
    }
    let message =
        format!("{root_text}/teams is not the directory that teamd works in: that was removed or moved");
    let fix = format!(
        "if the directory is put back, teamd opens it again within 30 s; else kill {pid}, which leaves the agents running, and \
         teamctl up"
    );
    report.warn("daemon", message, fix);
}

fn check_version(status: &StatusReply, report: &mut DoctorReport) {
    let (daemon_version, version) = (&status.daemon.version, env!("CARGO_PKG_VERSION"));
    let pid = status.daemon.pid;
    if daemon_version == version {
        report.ok("daemon", format!("teamd {daemon_version} answers, pid {pid}"));
    } else {
        let message = format!("teamd is {daemon_version} (pid {pid}), teamctl is {version}");
        let fix = format!("start it anew: kill {pid} leaves the agents running, then teamctl up");
        report.warn("daemon", message, fix);
    }
    if status.daemon.tmux.is_none() {
        report.warn("daemon", "its tmux server is gone", "see what it says: teamctl events --since 10m");
    }
}

/// Checks that the daemon's program file is still there. If an upgrade has replaced it, the program
/// of the shim may be gone too, and the daemon can start no agent.
fn check_program(pid: u32, report: &mut DoctorReport) {
    let program = platform::system().executable(pid).unwrap_or_default();
    if let Some(path) = program.to_string_lossy().strip_suffix(" (deleted)") {
        let fix = "teamctl down --suspend, then teamctl up --resume";
        report.warn("daemon", format!("{path} was replaced or removed while teamd runs"), fix);
    }
}
