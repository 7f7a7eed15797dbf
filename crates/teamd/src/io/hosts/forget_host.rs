//! Forgets a host. Once `hosts.json` says that the host is forgotten, nothing more is accepted on
//! its old link. If a crash interrupts the later steps, the repeated command completes them.

use crate::core::jobs::host_jobs::HostEvent;
use crate::io::hosts::connect_commands_file::SharedConnectCommands;
use crate::io::hosts::open_link::LinkSetup;
use crate::io::hosts::run_link::run_blocking;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::{MemberName, TeamName};
use protocol::team_home::TeamHome;
use std::sync::Arc;
use store::StateDir;
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
        let had_members = deregister_members(&link, &host)?;
        link.files.remove_earlier_generations(&host);
        if was_used || had_members { Ok(()) } else { Err(unknown_host_error(&host)) }
    });
    reporter.report(HostEvent::Forgotten(result.await));
}

fn unknown_host_error(host: &HostName) -> ErrorReport {
    let message = format!("cannot forget {host}: teamd has no link to it, and it runs no members");
    ErrorReport::new(ErrorKind::NotFound, message).with_help("see the hosts: teamctl hosts")
}

/// Ends a move of the team's home to the host. If the host is the home since, the epoch here is higher.
fn keep_home(link: &LinkSetup, team: &TeamName, host: &HostName) -> Result<(), ErrorReport> {
    let root = &link.files.root;
    match root.team_home(team)?.moving {
        Some(moving) if moving.host == *host => {
            Ok(root.set_team_home(team, &TeamHome::with_epoch(moving.epoch + 1))?)
        }
        _ => Ok(()),
    }
}

/// Deregisters the members on the host in all teams. Returns whether there was one.
fn deregister_members(link: &LinkSetup, host: &HostName) -> Result<bool, ErrorReport> {
    let mut had_members = false;
    for name in link.files.root.teams()? {
        let team = match link.files.root.team(&name) {
            Ok(team) if !name.is_claude_session() && !team.is_mirror() => team,
            _ => continue,
        };
        keep_home(link, &name, host)?;
        let Some(config) = team.config_if_valid() else { continue };
        let on_host = config.members.iter().filter(|member| member.host.as_deref() == Some(host.as_str()));
        let members: Vec<MemberName> = on_host.map(|member| member.name.clone()).collect();
        if !members.is_empty() {
            team.remove_lost_members(&members)?;
            had_members = true;
        }
    }
    Ok(had_members)
}
