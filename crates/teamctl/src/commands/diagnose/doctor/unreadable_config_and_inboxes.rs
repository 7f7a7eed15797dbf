//! Checks that the config and the inboxes of a team can be read, and that each entry of an inbox is
//! a valid message.

use super::report::DoctorReport;
use crate::commands::diagnose::list_inbox_owners::inbox_owners;
use protocol::team_and_member_names::MemberName;
use store::Team;

pub(super) fn check(team: &Team, report: &mut DoctorReport) {
    let name = team.name();
    match team.config() {
        Ok(config) => report.ok("config", format!("{name} has {} member(s)", config.members.len())),
        Err(error) => report.fail_with_error("config", error),
    }
    let owners = inbox_owners(team);
    let valid = owners.iter().filter(|owner| check_inbox(team, owner, report)).count();
    if valid == owners.len() {
        report.ok("inboxes", format!("{name} has {valid}, and all can be read"));
    }
    check_restored_messages(team, report);
}

/// Warns about messages that teamd has put back into an inbox from its journal (teamd's own record
/// of all messages). No message is lost, but another program must have overwritten the inbox.
fn check_restored_messages(team: &Team, report: &mut DoctorReport) {
    let counts = match team.restored_counts() {
        Ok(counts) => counts,
        Err(error) => return report.fail_with_error("messages", error),
    };
    for (file, count) in counts {
        let owner = file.trim_end_matches(".json");
        let message = format!("{}: {count} message(s) were put back into the inbox of {owner}", team.name());
        report.warn("messages", message, "another program rewrites it without its lock: find out which");
    }
}

/// The entries of an inbox that are no messages.
#[derive(Default)]
struct InvalidEntries {
    /// The index of the first, and its error.
    first: Option<(usize, String)>,
    count: usize,
}

/// Whether every entry is a message.
fn check_inbox(team: &Team, owner: &MemberName, report: &mut DoctorReport) -> bool {
    let inbox = team.inbox(owner);
    let result = inbox.fold(|invalid: &mut InvalidEntries, entry| {
        if let Err(error) = entry.message {
            invalid.first.get_or_insert((entry.index, error.to_string()));
            invalid.count += 1;
        }
    });
    let InvalidEntries { first, count } = match result {
        Ok(invalid) => invalid,
        Err(error) => {
            report.fail_with_error("inboxes", error);
            return false;
        }
    };
    let Some((index, error)) = first else { return true };
    let message = format!(
        "{count} entries of {} are no messages; the first is {index}: {error}",
        inbox.path().display()
    );
    report.warn("inboxes", message, "they are skipped; the program that wrote them has an error");
    false
}
