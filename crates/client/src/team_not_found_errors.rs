//! Errors for a team that does not exist or has no config.json, with what to do next.

use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::TeamName;
use std::path::Path;
use store::Root;

pub(crate) fn no_team_error(root: &Path) -> ErrorReport {
    let message = format!("cannot find a team: there is none in {}", root.display());
    ErrorReport::new(ErrorKind::NotFound, message).with_help(
        "make one with: teamctl create NAME; then start agents with: teamctl spawn NAME --profile PROFILE",
    )
}

/// The error for a team whose directory has no `config.json`.
pub(crate) fn missing_config_error(root: &Root, team: &TeamName) -> ErrorReport {
    let directory = root.path().join("teams").join(team.as_str());
    let message = format!("cannot use the team {team}: {} has no config.json", directory.display());
    ErrorReport::new(ErrorKind::NotFound, message).with_help(format!(
        "if teamd runs this team, it writes the file again within 2 s; to remove the rest of a team: teamctl delete {team} --force"
    ))
}

/// The error for a team that does not exist, with the teams that do.
pub(crate) fn missing_team_error(root: &Path, name: &str, teams: &[TeamName]) -> ErrorReport {
    let own_teams = teams.iter().filter(|team| !team.is_claude_session()).map(TeamName::as_str);
    let own_teams: Vec<&str> = own_teams.collect();
    let existing_help =
        if own_teams.is_empty() { String::new() } else { format!("there is: {}; ", own_teams.join(", ")) };
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {name} in {}", root.display()))
        .with_help(format!("{existing_help}to make {name}: teamctl create {name}"))
}
