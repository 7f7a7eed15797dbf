//! Asks the daemon for the host of a new member. The daemon reserves a slot there.

use crate::command_context::CommandContext;
use client::connection::Connection;
use protocol::control_socket::{HostCandidate, MemberHost, PlaceMemberReply, PlaceMemberRequest, Request};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::{ANY_HOST, HOME_HOST, HostName};
use protocol::team_and_member_names::{MemberName, TeamName};
use runner::HostTables;

/// A host with a reserved slot.
pub(super) struct Placement {
    pub(super) host: MemberHost,
    /// A connection to the daemon. The daemon frees the reserved slot when this connection closes,
    /// so it must stay open until config.json lists the new member.
    _reservation: Connection,
}

/// The hosts among which the daemon chooses.
pub(super) enum HostChoices<'a> {
    /// All described hosts that have these labels.
    Described { hosts: &'a HostTables, needs: &'a [String] },
    /// Only this host, even if it is full.
    Named(HostName),
}

/// Checks the values of `--host` and `--needs`.
///
/// # Errors
///
/// `Usage`.
pub(super) fn check_host_options(host: Option<&str>, needs: &[String]) -> Result<(), ErrorReport> {
    let usage_error = |message: &str, help: &str| {
        Err(ErrorReport::new(ErrorKind::Usage, message).with_help(help.to_owned()))
    };
    match host {
        Some(HOME_HOST) => usage_error(
            "cannot use --host home: home is this machine, and its name is only for the hosts file",
            "leave out --host",
        ),
        Some(ANY_HOST) | None if needs.iter().any(String::is_empty) => {
            usage_error("cannot use an empty label in --needs", "--needs gpu,cuda")
        }
        Some(ANY_HOST) => Ok(()),
        _ if !needs.is_empty() => usage_error(
            "cannot use --needs without --host any: only then teamd chooses the host",
            "add --host any, or leave out --needs",
        ),
        _ => Ok(()),
    }
}

/// Lets the daemon choose the host of a member.
///
/// # Errors
///
/// `Refused` if no host fits.
pub(super) fn place_member(
    context: &CommandContext,
    (team, name): (&TeamName, &str),
    choices: &HostChoices,
) -> Result<Placement, ErrorReport> {
    let (candidates, needs) = match choices {
        HostChoices::Described { hosts, needs } => (hosts.candidates.clone(), needs.to_vec()),
        HostChoices::Named(host) => {
            let host = MemberHost::Other(host.clone());
            (vec![HostCandidate { host, labels: Vec::new(), slots: None }], Vec::new())
        }
    };
    let name = MemberName::new_unchecked(name);
    let request = PlaceMemberRequest { team: team.clone(), name, needs, candidates };
    let (PlaceMemberReply { host }, reservation) =
        context.request_on_open_connection(Request::PlaceMember(request))?;
    Ok(Placement { host, _reservation: reservation })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_only_for_any_host() {
        let check = |host: Option<&str>, needs: &[&str]| {
            let needs: Vec<String> = needs.iter().map(|need| (*need).to_owned()).collect();
            check_host_options(host, &needs).map_err(|error| error.message)
        };
        for (host, needs) in
            [(None, &[][..]), (Some("devbox"), &[]), (Some("any"), &[]), (Some("any"), &["gpu"])]
        {
            assert_eq!(check(host, needs), Ok(()), "{host:?} {needs:?}");
        }
        for (host, needs) in
            [(None, &["gpu"][..]), (Some("devbox"), &["gpu"]), (Some("any"), &[""]), (Some("home"), &[])]
        {
            assert!(check(host, needs).is_err(), "{host:?} {needs:?}");
        }
    }
}
