//! The daemon: whether it answers, and whether it is of our release.

use super::report::Report;
use crate::here::{Here, misunderstood};
use protocol::control::{Reply, StatusReply};
use protocol::fault::Kind;

/// The daemon's status, if one answers.
pub(super) fn examine(here: &Here, report: &mut Report) -> Option<StatusReply> {
    match here.ask_for_status() {
        Ok(Reply::Status(status)) => {
            versions(&status, report);
            Some(status)
        }
        Ok(_) => {
            report.fault("daemon", &misunderstood());
            None
        }
        // Files need no daemon: that nobody supervises is worth a word, and no damage.
        Err(fault) if fault.kind == Kind::NoDaemon => {
            report.warn("daemon", fault.message, fault.hint.unwrap_or_default());
            None
        }
        Err(fault) => {
            report.fault("daemon", &fault);
            None
        }
    }
}

fn versions(status: &StatusReply, report: &mut Report) {
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
