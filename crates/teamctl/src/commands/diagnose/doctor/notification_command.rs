//! Checks the user's notification command: whether its program exists, and whether a notification
//! has failed in the last day.

use super::report::DoctorReport;
use client::read_event_log::{EventLog, event_time};
use client::short_duration::short_duration;
use profile::ProfileRegistry;
use protocol::event_log_line::{Event, EventKind};
use std::path::Path;
use store::{env_var, now};

/// For how long a failed notification is reported, in milliseconds.
const REPORTED_MS: u64 = 24 * 3_600_000;
const FIX: &str = "try it with: teamctl notify 'a word to try it'";

pub(super) fn check(state_dir: &Path, report: &mut DoctorReport) {
    match ProfileRegistry::for_user().notify_command("") {
        Ok(None) => {}
        Ok(Some(argv)) => check_command(&argv, state_dir, report),
        Err(error) => report.fail_with_error("notifications", error),
    }
}

fn check_command(argv: &[String], state_dir: &Path, report: &mut DoctorReport) {
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let path = env_var("PATH").unwrap_or_default();
    if !profile::find_program_in_path::program_exists(program, Path::new("/"), &path) {
        let message = format!("notify_command cannot start: there is no program {program}");
        return report.fail("notifications", message, "correct notify_command in config.toml, or your PATH");
    }
    match last_failure(&EventLog::read(state_dir).events()) {
        Some((reason, at)) if now().saturating_sub(at) < REPORTED_MS => {
            let ago = short_duration(now().saturating_sub(at));
            report.warn("notifications", format!("a notification failed {ago} ago: {reason}"), FIX);
        }
        _ => report.ok("notifications", format!("notify_command runs {program}")),
    }
}

/// Why the last failed notification failed, and when, in milliseconds since the epoch.
fn last_failure(events: &[Event]) -> Option<(&str, u64)> {
    events.iter().rev().find_map(|event| match &event.kind {
        EventKind::NotificationFailed { reason } => Some((reason.as_str(), event_time(event))),
        _ => None,
    })
}
