//! At the start of the daemon: cancels the moves of homes that an earlier daemon has begun, unless
//! the other host was already asked to become the home.

use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{HomeState, MoveStep, MovingHome, TeamHome};
use std::collections::BTreeMap;
use store::{Error, Root};

/// Cancels each unfinished move of a team's home, unless the other host was already asked to become
/// the home. Returns the teams whose home has moved to another host, and the teams for which
/// another host was asked to become the home and has not answered.
///
/// # Errors
///
/// If a team, or the file that says where its home is, can't be read or written.
pub(super) fn cancel_unoffered_moves(root: &Root) -> Result<BTreeMap<TeamName, TeamHome>, ErrorReport> {
    let mut homes = BTreeMap::new();
    for name in root.teams()? {
        let home = match root.team(&name) {
            Ok(team) => team.home()?,
            // Another program has deleted the team, or another user has it, or it is a symbolic
            // link. The daemon supervises no such team.
            Err(Error::NoSuchTeam { .. } | Error::Untrusted { .. } | Error::UnexpectedFileType { .. }) => {
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        match home {
            TeamHome { epoch, state: HomeState::Moving(MovingHome { step: MoveStep::Exchanging, .. }) } => {
                root.set_team_home(&name, &TeamHome::with_epoch(epoch))?;
            }
            TeamHome { state: HomeState::Settled, .. } => {}
            home => drop(homes.insert(name, home)),
        }
    }
    Ok(homes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::TeamConfig;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use store::Durability;

    fn create_team(root: &Root, name: &str) -> TeamName {
        let team = TeamName::parse(name).unwrap();
        let config = TeamConfig {
            name: name.to_owned(),
            description: None,
            created_at: 1,
            lead_agent_id: String::new(),
            lead_session_id: String::new(),
            members: Vec::new(),
            hidden_pane_ids: Vec::new(),
        };
        root.create_team(&config).unwrap();
        team
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "another program changes the directories")]
    fn team_that_is_not_supervised_is_skipped_and_a_failed_read_is_reported() {
        let dir = tempfile::tempdir().unwrap();
        let (path, state) = (dir.path().join("root"), dir.path().join("state"));
        let root = Root::open(&path, &state, Durability::Process).unwrap();
        let moving = create_team(&root, "survey");
        let record = MovingHome {
            host: protocol::hosts_file_entry::HostName::parse("devbox").unwrap(),
            epoch: 2,
            since: 1,
            created_at: 1,
            step: MoveStep::Exchanging,
            usage: protocol::team_home::HomeUsage::default(),
        };
        let home = TeamHome { state: HomeState::Moving(record), ..TeamHome::default() };
        root.set_team_home(&moving, &home).unwrap();
        create_team(&root, "shared");
        let shared = path.join("teams/shared");
        std::fs::set_permissions(&shared, Permissions::from_mode(0o777)).unwrap();
        std::os::unix::fs::symlink(&shared, path.join("teams/linked")).unwrap();
        assert!(cancel_unoffered_moves(&root).unwrap().is_empty());
        assert_eq!(root.team_home(&moving).unwrap(), TeamHome::default());

        root.set_team_home(&moving, &home).unwrap();
        std::fs::write(state.join(protocol::state_file_names::team_home(&moving)), "{").unwrap();
        assert!(cancel_unoffered_moves(&root).is_err());
    }
}
