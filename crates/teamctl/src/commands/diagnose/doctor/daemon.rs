//! Checks that the daemon answers, that it has the same version as teamctl, that its program file
//! still exists, and that it works in the current root.

use super::report::DoctorReport;
use crate::context::CommandContext;
use protocol::control::StatusReply;
use protocol::error::ErrorKind;
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
/// root. If the daemon does not hold the lock on `root/teams`, the directory that it locked was
/// removed or moved.
pub(super) fn check_root(root: &Path, status: &StatusReply, report: &mut DoctorReport) {
    let (pid, root_text) = (status.daemon.pid, root.display());
    let teams = std::fs::metadata(root.join("teams")).map(|metadata| metadata.ino()).ok();
    let locked_inodes = locked_inodes(&read_open_file_infos(pid), pid);
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

/// Returns the contents of all files in `/proc/PID/fdinfo`. Each describes one open file of the
/// process and the locks on it. `/proc/locks` is not used: the kernel returns it in several pieces,
/// and locks can be missing if other locks change in between.
fn read_open_file_infos(pid: u32) -> String {
    let infos = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    infos.filter_map(|info| std::fs::read_to_string(info.path()).ok()).collect()
}

/// The inodes on which the process holds a flock. `locks` has lines as in `/proc/locks`.
fn locked_inodes(locks: &str, pid: u32) -> Vec<u64> {
    let inode = |line: &str| {
        let mut fields = line.split_whitespace().skip_while(|field| *field != "FLOCK").skip(3);
        let is_holder = fields.next()?.parse() == Ok(pid);
        fields.next()?.rsplit(':').next()?.parse().ok().filter(|_| is_holder)
    };
    locks.lines().filter_map(inode).collect()
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

/// Checks that the daemon's program file is still there. If an upgrade has replaced it, the program of
/// the shim may be gone too, and the daemon can start no agent.
fn check_program(pid: u32, report: &mut DoctorReport) {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    if let Some(path) = program.to_string_lossy().strip_suffix(" (deleted)") {
        let fix = "teamctl down --suspend, then teamctl up --resume";
        report.warn("daemon", format!("{path} was replaced or removed while teamd runs"), fix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_inodes_of_a_process_are_found() {
        let locks = "1: FLOCK  ADVISORY  WRITE 70 08:02:11 0 EOF\n2: POSIX  ADVISORY  WRITE 70 08:02:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 71 08:02:13 0 EOF\n3: FLOCK  ADVISORY  READ  70 00:1f:14 0 EOF\n";
        assert_eq!(locked_inodes(locks, 70), [11, 14]);
        assert!(
            locked_inodes("", 70).is_empty() && locked_inodes("nothing: of the FLOCK kind", 70).is_empty()
        );
    }

    #[test]
    fn flock_of_an_open_file_is_found() {
        let file = tempfile::tempfile().unwrap();
        let is_locked = || {
            let pid = std::process::id();
            locked_inodes(&read_open_file_infos(pid), pid).contains(&file.metadata().unwrap().ino())
        };
        assert!(!is_locked());
        file.lock().unwrap();
        assert!(is_locked());
    }
}
