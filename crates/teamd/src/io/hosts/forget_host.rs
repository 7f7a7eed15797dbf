//! Forgets a host. First writes this to `hosts.json`, so that nothing more is accepted from the
//! host. If a crash interrupts the later steps, the user can repeat `hosts forget` to complete
//! them.

use crate::core::jobs::host_jobs::HostEvent;
use crate::io::hosts::connect_commands_file::SharedConnectCommands;
use crate::io::hosts::open_link::LinkSetup;
use crate::io::hosts::run_link::run_blocking;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_home::TeamHome;
use std::sync::Arc;
use store::{Root, StateDir, Team};
use tokio::task::JoinHandle;

/// Waits for the end of the link, and forgets the host. Reports [`HostEvent::Forgotten`].
pub(super) async fn forget_host(
    mut link: LinkSetup,
    (host, connect_commands): (HostName, Arc<SharedConnectCommands>),
    ended: Option<JoinHandle<()>>,
) {
    if let Some(task) = ended {
        task.await.ok();
    }
    let reporter = link.reporter.clone();
    let result = run_blocking(move || {
        let state_dir = StateDir::open(&link.files.state_dir)?;
        let was_used = connect_commands.has_command(&host);
        connect_commands.forget(&state_dir, &host)?;
        link.files.generation = connect_commands.generation(&host);
        let was_recorded = remove_from_teams(&link.files.root, &host)?;
        link.files.remove_earlier_generations(&host);
        if was_used || was_recorded { Ok(()) } else { Err(unknown_host_error(&host)) }
    });
    reporter.report(HostEvent::Forgotten(result.await));
}

fn unknown_host_error(host: &HostName) -> ErrorReport {
    let message = format!("cannot forget {host}: teamd has no link to it, and it runs no members");
    ErrorReport::new(ErrorKind::NotFound, message).with_help("see the hosts: teamctl hosts")
}

/// In all teams, removes the members on the host, and ends a move of the team's home to the host.
/// Returns whether there was anything to remove or to end.
fn remove_from_teams(root: &Root, host: &HostName) -> Result<bool, ErrorReport> {
    let mut was_recorded = false;
    let names = root.teams()?;
    let teams = || names.iter().filter(|name| !name.is_claude_session());
    let teams = || teams().filter_map(|name| root.team(name).ok()).filter(|team| !team.is_mirror());
    for team in teams() {
        was_recorded |= deregister_members(&team, host)?;
    }
    for team in teams() {
        was_recorded |= keep_home(root, team.name(), host)?;
    }
    Ok(was_recorded)
}

fn deregister_members(team: &Team, host: &HostName) -> Result<bool, ErrorReport> {
    let Some(config) = team.config_if_valid() else { return Ok(false) };
    let on_host = config.members.iter().filter(|member| member.host.as_deref() == Some(host.as_str()));
    let members: Vec<MemberName> = on_host.map(|member| member.name.clone()).collect();
    if !members.is_empty() {
        team.remove_lost_members(&members)?;
    }
    Ok(!members.is_empty())
}

/// If the team's home is being moved to the host, ends the move: this host stays the home. The host
/// may already believe that it is the home, so this host takes a higher epoch.
fn keep_home(root: &Root, team: &TeamName, host: &HostName) -> Result<bool, ErrorReport> {
    match root.team_home(team)?.moving() {
        Some(moving) if moving.host == *host => {
            root.set_team_home(team, &TeamHome::with_epoch(moving.epoch + 1))?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::team_config::{Member, TeamConfig};
    use protocol::team_home::{HomeState, HomeUsage, MoveStep, MovingHome};
    use store::Durability;

    /// A repeated command completes one that was killed after the link was forgotten.
    #[test]
    fn move_to_a_host_without_link_and_members_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(&dir.path().join("root"), &dir.path().join("state"), Durability::Process);
        let (root, team) = (root.unwrap(), TeamName::parse("survey").unwrap());
        let config = TeamConfig {
            name: team.to_string(),
            description: None,
            created_at: 1,
            lead_agent_id: String::new(),
            lead_session_id: String::new(),
            members: vec![Member::lead(&team, None, String::new(), "/".to_owned(), 1)],
            hidden_pane_ids: Vec::new(),
        };
        root.create_team(&config).unwrap();
        let host = HostName::parse("devbox").unwrap();
        assert!(!remove_from_teams(&root, &host).unwrap());
        let step = MoveStep::Offered;
        let usage = HomeUsage::default();
        let moving = MovingHome { host: host.clone(), epoch: 2, since: 1, created_at: 1, step, usage };
        root.set_team_home(&team, &TeamHome { state: HomeState::Moving(moving), ..TeamHome::default() })
            .unwrap();
        assert!(remove_from_teams(&root, &host).unwrap());
        assert_eq!(root.team_home(&team).unwrap(), TeamHome::with_epoch(3));
    }
}
