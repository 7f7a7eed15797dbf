//! Reads the roster when the daemon starts, and brings it up to date with the teams in the root.

use crate::core::roster::{ROSTER_VERSION, Roster};
use crate::io::files::create_and_delete_teams;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::shell_quote::shell_quote;
use protocol::state_file_names::ROSTER;
use protocol::team_and_member_names::TeamName;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::path::Path;
use store::{Root, StateDir};

/// Reads the roster from the state directory. If the file is missing, returns an empty roster.
///
/// # Errors
///
/// If the file cannot be read, is not valid, or was written in another version of the format.
pub(crate) fn read_roster(state: &StateDir) -> Result<Roster, ErrorReport> {
    let Some(bytes) = state.read(ROSTER).map_err(ErrorReport::from)? else {
        return Ok(Roster::default());
    };
    let path = state.path().join(ROSTER);
    let roster: RosterVersion =
        serde_json::from_slice(&bytes).map_err(|error| invalid_roster_error(&path, &error))?;
    check_roster_version(&path, roster.version)?;
    serde_json::from_slice(&bytes).map_err(|error| invalid_roster_error(&path, &error))
}

/// The version field of a roster. All other fields may differ in another version.
#[derive(serde::Deserialize)]
struct RosterVersion {
    version: u32,
}

/// Refuses a roster that was written in another version of the format. The agents in that roster
/// may still run. A daemon that misread the roster could end these agents or start them twice.
fn check_roster_version(path: &Path, version: u32) -> Result<(), ErrorReport> {
    let (writer, help) = match version.cmp(&ROSTER_VERSION) {
        Ordering::Equal => return Ok(()),
        Ordering::Greater => ("a newer", "start that teamd again".to_owned()),
        Ordering::Less => ("an older", older_roster_help(path)),
    };
    let message = format!(
        "cannot read {}: {writer} teamd wrote it (version {version}; this teamd reads version {ROSTER_VERSION})",
        path.display()
    );
    Err(ErrorReport::new(ErrorKind::Config, message).with_help(help))
}

fn older_roster_help(path: &Path) -> String {
    let state_dir = path.parent().unwrap_or(path).to_string_lossy();
    let [from, to] = [state_dir.to_string(), format!("{state_dir}.old")].map(|path| shell_quote(&path));
    format!(
        "end its members with the older teamctl (teamctl down), then move the state directory away; agents that still \
         run are not adopted: mv {from} {to}"
    )
}

fn invalid_roster_error(path: &Path, error: &serde_json::Error) -> ErrorReport {
    ErrorReport::new(ErrorKind::InvalidData, format!("cannot read {}: {error}", path.display()))
        .with_help("move it aside; agents that run then are not adopted")
}

/// Adds to the roster each team that has a directory in the root but is missing in the roster.
///
/// Such a team was created by another program, or by an earlier daemon whose state directory was
/// lost. The daemon can spawn members into the team and delete it, but does not end the members
/// that the team has already.
pub(crate) fn add_unknown_teams(root: &Root, roster: &mut Roster) {
    for name in root.teams().unwrap_or_default().into_iter().filter(|name| !name.is_claude_session()) {
        // An invalid config.json counts as empty: another program may be writing the file, and the
        // start of the daemon does not wait for that.
        let config = || root.team(&name).ok()?.config_if_valid();
        let member_count = || config().map_or(0, |config| config.members.len());
        roster.joined_counts.entry(name.clone()).or_insert_with(|| member_count().saturating_sub(1) as u64);
    }
}

/// Removes from the roster each team that has no directory, no worktree in the roster, no agent and
/// no member that waits for a respawn. Such a team remains if an earlier daemon was killed at the
/// end of a deletion, before it saved the roster.
///
/// A team without directory that has a worktree in the roster stays: another program has removed
/// the directory, and only the roster says where the worktree is.
pub(crate) fn remove_deleted_teams(root: &Root, state: &StateDir, roster: &mut Roster) {
    let running = roster.records.iter().map(|record| &record.request.team);
    let pending = roster.pending_respawns.iter().map(|pending| &pending.request.team);
    let teams_with_members: BTreeSet<TeamName> = running.chain(pending).cloned().collect();
    let is_deleted = |name: &TeamName| {
        !teams_with_members.contains(name)
            && roster.worktrees.get(name).is_none_or(Vec::is_empty)
            && matches!(root.open_team_without_config(name), Ok(None))
    };
    for name in roster.joined_counts.keys().filter(|name| is_deleted(name)).cloned().collect::<Vec<_>>() {
        roster.joined_counts.remove(&name);
        roster.layouts.remove(&name);
        roster.person_panes.remove(&name);
        roster.record_files.remove(&name);
        let removed =
            create_and_delete_teams::remove_team_files(state, &name).and(root.delete_records(&name));
        removed.unwrap_or_else(|error| tracing::warn!("{error}"));
    }
}

/// If a team's unfinished deletion is in the roster but a newer team has the same name, drops the
/// deletion. Otherwise the daemon would delete the newer team.
///
/// This happens if an earlier daemon was killed after it had deleted the team's files but before it
/// saved the roster, and another program then created the newer team.
pub(crate) fn forget_deletions_of_newer_teams(root: &Root, roster: &mut Roster) {
    roster.deletions.retain(|deletion| {
        let team = root.team(&deletion.request.team).ok();
        let config = team.and_then(|team| team.config_if_valid());
        config.is_none_or(|config| config.created_at <= deletion.accepted_at)
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::roster::{AcceptedDeletion, PidOrigin};
    use protocol::control_socket::DeleteTeamRequest;
    use store::Durability;

    #[test]
    fn a_team_without_files_is_removed_and_a_team_with_a_directory_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root");
        std::fs::create_dir_all(path.join("teams/half")).unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let root = Root::open(&path, state.path(), Durability::Process).unwrap();
        let [with_directory, without_files] = ["half", "gone"].map(|name| TeamName::parse(name).unwrap());
        let subdirs = ["answers", "journal"].map(|name| state.open_subdir(name).unwrap());
        for team in [&with_directory, &without_files] {
            state.replace(&format!("config-backup-{team}.json"), b"{}").unwrap();
            subdirs.iter().for_each(|dir| dir.replace(&format!("{team}.jsonl"), b"").unwrap());
        }
        let mut roster = Roster {
            joined_counts: [(with_directory.clone(), 1), (without_files, 1)].into(),
            ..Roster::default()
        };
        remove_deleted_teams(&root, &state, &mut roster);
        assert_eq!(roster.joined_counts.into_keys().collect::<Vec<_>>(), [with_directory]);
        assert!(state.names().unwrap().contains(&"config-backup-half.json".to_owned()));
        assert!(!state.names().unwrap().contains(&"config-backup-gone.json".to_owned()));
        subdirs.iter().for_each(|dir| assert_eq!(dir.names().unwrap(), ["half.jsonl"]));
    }

    #[test]
    fn roster_of_any_size_can_be_read() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let pid_origin = PidOrigin { boot_id: Some("x".repeat(9 << 20)), pid_namespace: None };
        let roster = Roster { version: ROSTER_VERSION, pid_origin: pid_origin.clone(), ..Roster::default() };
        state.replace(ROSTER, &serde_json::to_vec(&roster).unwrap()).unwrap();
        assert_eq!(read_roster(&state).unwrap().pid_origin, pid_origin);
    }

    #[test]
    fn deletion_is_kept_for_its_own_team_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("root");
        let files = StateDir::open(&path.join("teams/survey")).unwrap();
        let config = br#"{"name":"survey","createdAt":1000,"members":[]}"#;
        files.replace("config.json", config).unwrap();
        let root = Root::open(&path, dir.path(), Durability::Process).unwrap();
        let is_kept = |accepted_at: u64| {
            let team = TeamName::parse("survey").unwrap();
            let request = DeleteTeamRequest::forced(team);
            let deletions = vec![AcceptedDeletion { request, accepted_at }];
            let mut roster = Roster { deletions, ..Roster::default() };
            forget_deletions_of_newer_teams(&root, &mut roster);
            !roster.deletions.is_empty()
        };
        assert!(is_kept(1000), "the team was created before the deletion was accepted");
        assert!(!is_kept(999));
    }

    #[test]
    fn a_team_without_a_directory_is_kept_while_it_has_a_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("root"), dir.path(), Durability::Process).unwrap();
        let state = StateDir::open(&dir.path().join("state")).unwrap();
        let survey = TeamName::parse("survey").unwrap();
        let worktree = serde_json::from_value(serde_json::json!({"member": "ann", "record": {
            "path": "/repo/ann", "branch": "ann", "branch_created": true, "common_git_dir": "/repo/.git", "base_commit": "0",
            "inode": 1,
        }}))
        .unwrap();
        let mut roster = Roster {
            joined_counts: [(survey.clone(), 1)].into(),
            worktrees: [(survey, vec![worktree])].into(),
            ..Roster::default()
        };
        remove_deleted_teams(&root, &state, &mut roster);
        assert_eq!(roster.joined_counts.len(), 1, "the roster still records the worktree");
    }
}
