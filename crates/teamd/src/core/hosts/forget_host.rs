//! At the home: forgets a host that is gone for good. If the host comes back, the home makes a new
//! link to it, with a higher generation. The daemon there then ends the members and mirrors of the
//! earlier link.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::hosts::move_home;
use crate::core::hosts::use_and_await_host::{check_not_being_forgotten, fail_waiters};
use crate::core::jobs::host_jobs::{HostEvent, HostJob, LinkId};
use crate::core::reply_to_client::send_reply;
use crate::core::state::home_move::{HomeMove, HomeMoveStep};
use crate::core::state::host_links::{HostLinks, LinkConnection};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{ForgetHostRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::MemberName;

/// Forgets a host. The reply follows once its members are deregistered.
pub(crate) fn forget_host(context: &mut Context, client: ConnId, request: ForgetHostRequest) {
    let ForgetHostRequest { host } = request;
    if let Err(error) = check_forgettable(&context.state.host_links, &host) {
        return send_reply(context, client, Err(error));
    }
    context.state.host_links.hosts_being_forgotten.insert(host.clone(), client);
    context.effects.push(Effect::Host(HostJob::ForgetHost(host)));
}

fn check_forgettable(links: &HostLinks, host: &HostName) -> Result<(), ErrorReport> {
    check_not_being_forgotten(links, host)?;
    check_no_move(links, host)?;
    let link = links.links.get(&LinkId::ToAnnex(host.clone()));
    let connected = link.filter(|link| link.connection == LinkConnection::Connected);
    let members = connected.into_iter().flat_map(|link| &link.members);
    let (mut texts, mut commands) = (Vec::new(), Vec::new());
    for (team, names) in members.filter(|(_, names)| !names.is_empty()) {
        let names: Vec<&str> = names.iter().map(MemberName::as_str).collect();
        texts.push(format!("{} of {team}", names.join(", ")));
        commands.push(format!("teamctl -t {team} shutdown {}", names.join(" ")));
    }
    if texts.is_empty() {
        return Ok(());
    }
    let message = format!("cannot forget {host}: it has contact, and runs {}", texts.join(", "));
    let help = format!("end them first: {}", commands.join("; "));
    Err(ErrorReport::new(ErrorKind::Refused, message).with_help(help))
}

/// Refuses to forget a host that can still answer whether it is the home of a team.
fn check_no_move(links: &HostLinks, host: &HostName) -> Result<(), ErrorReport> {
    let link = links.links.get(&LinkId::ToAnnex(host.clone()));
    let has_contact = link.is_some_and(|link| link.connection == LinkConnection::Connected);
    let is_open = |moving: &HomeMove| has_contact || !matches!(moving.step, HomeMoveStep::Offered);
    let open = links.home_moves.iter().find(|(_, moving)| moving.host == *host && is_open(moving));
    open.map_or(Ok(()), |(team, _)| {
        let message = format!("cannot forget {host}: the home of {team} moves there");
        Err(ErrorReport::new(ErrorKind::Refused, message).with_help("try again in a moment"))
    })
}

/// Handles the result of forgetting a host. The link to the host has ended, even if forgetting the
/// host has failed. After a failure, the person must repeat the command.
pub(crate) fn handle_forgotten(context: &mut Context, link: &LinkId, result: Result<(), ErrorReport>) {
    let LinkId::ToAnnex(host) = link else { return };
    let links = &mut context.state.host_links;
    let client = links.hosts_being_forgotten.remove(host);
    let reason = match &result {
        Ok(()) => {
            links.links.remove(link);
            links.forgotten_hosts.insert(host.clone());
            move_home::end_moves_to_forgotten_host(context, host);
            context.effects.push(Effect::log_daemon(EventKind::HostForgotten { host: host.to_string() }));
            "it was forgotten".to_owned()
        }
        Err(error) => format!("its link was ended to forget it, which failed: {}", error.message),
    };
    let error = ErrorReport::new(ErrorKind::Refused, format!("cannot reach {host}: {reason}"));
    fail_waiters(context, host, &error, |_| true);
    if let Some(client) = client {
        send_reply(context, client, result.map(|()| Reply::Ack));
    }
}

/// Whether this report comes from a link that has ended.
pub(crate) fn is_outdated(links: &HostLinks, link: &LinkId, event: &HostEvent) -> bool {
    match (link, event) {
        (_, HostEvent::Forgotten(_)) | (LinkId::ToHome(_), _) => false,
        (LinkId::ToAnnex(host), _) => links.forgotten_hosts.contains(host),
    }
}
