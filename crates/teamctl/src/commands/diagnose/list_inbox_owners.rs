//! Lists the inboxes of a team, including those of past members.

use protocol::team_and_member_names::MemberName;
use store::Team;

/// The owners of the team's inboxes, named like the files. Empty if the directory cannot be read.
pub(super) fn inbox_owners(team: &Team) -> Vec<MemberName> {
    let Ok(entries) = std::fs::read_dir(team.path().join("inboxes")) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut stems: Vec<String> = names
        .filter(|name| !name.starts_with('.'))
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    stems.sort();
    stems.iter().map(|stem| MemberName::new_unchecked(stem)).collect()
}
