//! A team's config and inboxes: whether each can be read, and which entry of an inbox is no message.

use super::report::DoctorReport;
use protocol::error::ErrorReport;
use protocol::name::AgentName;
use std::path::Path;
use store::Team;

pub(super) fn check(team: &Team, report: &mut DoctorReport) {
    let name = team.name();
    match team.config().map_err(ErrorReport::from) {
        Ok(config) => report.ok("config", format!("{name} has {} member(s)", config.members.len())),
        Err(fault) => report.fail_with_error("config", &fault),
    }
    let owners = inbox_owners(&team.path().join("inboxes"));
    let sound = owners.iter().filter(|owner| check_inbox(team, owner, report)).count();
    if sound == owners.len() {
        report.ok("inboxes", format!("{name} has {sound}, and all can be read"));
    }
    check_restored_messages(team, report);
}

/// Nothing is damaged by it any more; but somebody does it.
fn check_restored_messages(team: &Team, report: &mut DoctorReport) {
    match team.restored_counts().map_err(ErrorReport::from) {
        Ok(counts) => counts.into_iter().for_each(|(file, count)| {
            let owner = file.trim_end_matches(".json");
            let message =
                format!("{}: {count} message(s) were put back into the inbox of {owner}", team.name());
            report.warn("messages", message, "another program rewrites it without its lock: find out which");
        }),
        Err(fault) => report.fail_with_error("messages", &fault),
    }
}

/// Whose inboxes there are, as the files call them.
pub(in crate::commands) fn inbox_owners(directory: &Path) -> Vec<AgentName> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut stems: Vec<String> = names
        .filter(|name| !name.starts_with('.'))
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    stems.sort();
    stems.iter().map(|stem| AgentName::new_unchecked(stem)).collect()
}

/// Whether every entry is a message.
fn check_inbox(team: &Team, owner: &AgentName, report: &mut DoctorReport) -> bool {
    let inbox = team.inbox(owner);
    let entries = match inbox.read().map_err(ErrorReport::from) {
        Ok(entries) => entries,
        Err(fault) => {
            report.fail_with_error("inboxes", &fault);
            return false;
        }
    };
    let mut faults = entries.iter().filter_map(|entry| Some((entry.index, entry.message.as_ref().err()?)));
    let Some((index, why)) = faults.next() else { return true };
    let message = format!(
        "{} entries of {} are no messages; the first is {index}: {why}",
        faults.count() + 1,
        inbox.path().display()
    );
    report.warn("inboxes", message, "they are skipped; whoever wrote them writes them wrong");
    false
}
