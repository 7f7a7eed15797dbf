//! The daemon: whether it answers, and whether it is of our release.

use super::report::DoctorReport;
use crate::context::CommandContext;
use client::error::unexpected_reply;
use protocol::control::{Reply, StatusReply};
use protocol::error::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The daemon's status, if one answers.
pub(super) fn check(here: &CommandContext, report: &mut DoctorReport) -> Option<StatusReply> {
    match here.daemon_status() {
        Ok(Reply::Status(status)) => {
            check_version(&status, report);
            Some(status)
        }
        Ok(_) => {
            report.fail_with_error("daemon", &unexpected_reply());
            None
        }
        // Files need no daemon: that nobody supervises is worth a word, and no damage.
        Err(fault) if fault.kind == ErrorKind::NoDaemon => {
            report.warn("daemon", fault.message, fault.help.unwrap_or_default());
            None
        }
        Err(fault) => {
            report.fail_with_error("daemon", &fault);
            None
        }
    }
}

/// It holds a lock on the directory that it works in. Where that is not the one at its place, somebody has removed or
/// moved it a moment ago.
pub(super) fn check_root(root: &Path, status: &StatusReply, report: &mut DoctorReport) {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let (pid, shown) = (status.daemon.pid, root.display());
    let there = std::fs::metadata(root.join("teams")).map(|found| found.ino()).ok();
    let held = locked_inodes(&locks, pid);
    // A kernel that shows us none of its locks says nothing of this one.
    if held.is_empty() || there.is_some_and(|there| held.contains(&there)) {
        return;
    }
    let message =
        format!("{shown}/teams is not the directory that teamd works in: that was removed or moved");
    let hint = format!(
        "it opens it anew within 30 s of when it is there; else kill {pid}, which leaves the agents running, and \
         teamctl up"
    );
    report.warn("daemon", message, hint);
}

/// The inodes of what this process has locked whole, by the kernel's table.
fn locked_inodes(locks: &str, pid: u32) -> Vec<u64> {
    let inode = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "FLOCK").skip(3);
        let its = words.next()?.parse() == Ok(pid);
        words.next()?.rsplit(':').next()?.parse().ok().filter(|_| its)
    };
    locks.lines().filter_map(inode).collect()
}

fn check_version(status: &StatusReply, report: &mut DoctorReport) {
    let (theirs, ours) = (&status.daemon.version, env!("CARGO_PKG_VERSION"));
    let pid = status.daemon.pid;
    if theirs == ours {
        report.ok("daemon", format!("teamd {theirs} answers, pid {pid}"));
    } else {
        let message = format!("teamd is {theirs} (pid {pid}), teamctl is {ours}");
        report.warn(
            "daemon",
            message,
            format!("start it anew: kill {pid} leaves the agents running, then teamctl up"),
        );
    }
    if status.daemon.tmux.is_none() {
        report.warn("daemon", "its tmux server is gone", "see what it says: teamctl events --since 10m");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_table_says_what_a_process_has_locked() {
        let locks = "1: FLOCK  ADVISORY  WRITE 70 08:02:11 0 EOF\n2: POSIX  ADVISORY  WRITE 70 08:02:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 71 08:02:13 0 EOF\n3: FLOCK  ADVISORY  READ  70 00:1f:14 0 EOF\n";
        assert_eq!(locked_inodes(locks, 70), [11, 14]);
        assert!(
            locked_inodes("", 70).is_empty() && locked_inodes("nothing: of the FLOCK kind", 70).is_empty()
        );
    }
}
