//! Lets the daemon here connect to a host, with the connect command of the hosts file.

use super::check_host::HostCheck;
use super::read_hosts::HostSource;
use crate::command_context::CommandContext;
use protocol::control_socket::{HostContact, HostStatus, Request, TeamStatus, UseHostRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{Host, HostName, is_plain_word};
use protocol::team_and_member_names::TeamName;

/// The request that connects the daemon to the host and mirrors the team there.
///
/// # Errors
///
/// `Config` if the host's root has characters that a shell there would change.
pub(in crate::commands) fn use_host_request(
    team: TeamName,
    (name, host): (&HostName, &Host),
) -> Result<Request, ErrorReport> {
    let command = annex_command(name, host)?;
    Ok(Request::UseHost(UseHostRequest { team, host: name.clone(), command }))
}

/// The command with which the daemon runs `teamctl annex` on the host. The daemon appends some
/// arguments to it, such as the id of the home and the name of the host.
fn annex_command(name: &HostName, host: &Host) -> Result<Vec<String>, ErrorReport> {
    if let Some(root) = host.root.as_deref().filter(|root| !is_plain_word(root)) {
        let message = format!(
            "cannot run members on {name}: a shell there would change the root {root:?} of the hosts file"
        );
        return Err(ErrorReport::new(ErrorKind::Config, message)
            .with_help("use a root of letters, digits and _-./+@%:, (a link to it is enough)"));
    }
    let root = host.root.iter().flat_map(|root| ["--root", root]);
    let teamctl = std::iter::once(host.teamctl.as_str()).chain(root).chain(["annex", "--stdio"]);
    Ok(host.connect.iter().cloned().chain(teamctl.map(str::to_owned)).collect())
}

/// Called after a check of hosts. Asks the daemon to connect to each checked host on which a team
/// has members, so that the daemon learns a changed connect command from the hosts file. If the
/// daemon cannot connect, its error is added to the result of the host's check.
///
/// An error `Refused` is not added. It says that the team may not connect, for example because its
/// budget is exhausted, and nothing about the host.
pub(super) fn connect_daemon(context: &CommandContext, checks: &mut [HostCheck]) {
    let teams = context.daemon_status().map(|status| status.teams).unwrap_or_default();
    for check in checks.iter_mut().filter(|check| check.errors.is_empty()) {
        for team in teams.iter().filter(|team| has_members_on(team, &check.host)) {
            let error = connect_to_host(context, &team.name, &check.host).err();
            let error = error.filter(|error| error.kind != ErrorKind::Refused);
            // The hosts file is usually the same for all teams, and so is the error.
            check.errors.extend(error.filter(|error| !check.errors.contains(error)));
        }
    }
}

/// Whether the team has members on the host. The daemon does not connect to the home of a team.
fn has_members_on(team: &TeamStatus, name: &HostName) -> bool {
    let is_home = |host: &HostStatus| matches!(host.contact, HostContact::IsHome { .. });
    team.hosts.iter().any(|host| host.host == *name && !is_home(host))
}

fn connect_to_host(context: &CommandContext, team: &TeamName, host: &HostName) -> Result<(), ErrorReport> {
    let mut source = HostSource::default();
    // The check has read the same files without errors.
    let Ok(hosts) = source.read_for_team(context, team)? else { return Ok(()) };
    let (name, entry) = source.find(&hosts, host.as_str())?;
    context.request(use_host_request(team.clone(), (&name, &entry))?).map_err(daemon_error)
}

/// The error of a daemon that does not reach the host as this process does.
fn daemon_error(error: ErrorReport) -> ErrorReport {
    match error.kind {
        ErrorKind::Io => ErrorReport::new(error.kind, format!("the daemon {}", error.message)).with_help(
            "it lacks variables of this shell, such as SSH_AUTH_SOCK: name the key in ~/.ssh/config",
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(root: Option<&str>) -> Host {
        Host {
            connect: ["ssh", "-T", "devbox"].map(str::to_owned).to_vec(),
            attach: None,
            root: root.map(str::to_owned),
            teamctl: "~/bin/teamctl".to_owned(),
            labels: Vec::new(),
            slots: None,
        }
    }

    #[test]
    fn command_for_the_daemon_names_teamctl_and_the_root_there() {
        let name = HostName::parse("devbox").unwrap();
        let command = |root| annex_command(&name, &host(root)).map(|words| words.join(" "));
        assert_eq!(command(None).unwrap(), "ssh -T devbox ~/bin/teamctl annex --stdio");
        assert_eq!(command(Some("~/r")).unwrap(), "ssh -T devbox ~/bin/teamctl --root ~/r annex --stdio");
        assert_eq!(command(Some("/a b")).unwrap_err().kind, ErrorKind::Config);
    }
}
