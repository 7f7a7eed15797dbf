//! At the home: forgets a host that is gone for good. If the host comes back, the next connection to
//! it has a higher generation, and its daemon ends what is left of the earlier one.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::hosts::use_and_await_host::{check_not_being_forgotten, fail_waiters};
use crate::core::jobs::host_jobs::{HostEvent, HostJob, LinkId};
use crate::core::reply_to_client::send_reply;
use crate::core::state::host_links::{HostLinks, LinkConnection};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{ForgetHostRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::hosts_file_entry::HostName;

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
    let link = links.links.get(&LinkId::ToAnnex(host.clone()));
    let connected = link.filter(|link| link.connection == LinkConnection::Connected);
    let members = connected.into_iter().flat_map(|link| &link.members);
    let members: Vec<String> =
        members.flat_map(|(team, names)| names.iter().map(move |name| format!("{name} of {team}"))).collect();
    if members.is_empty() {
        return Ok(());
    }
    let message = format!("cannot forget {host}: it has contact, and runs {}", members.join(", "));
    Err(ErrorReport::new(ErrorKind::Refused, message).with_help("end them first: teamctl shutdown --all"))
}

/// Handles the end of the link to a forgotten host. If this failed, the person repeats the command.
pub(crate) fn handle_forgotten(context: &mut Context, link: &LinkId, result: Result<(), ErrorReport>) {
    let LinkId::ToAnnex(host) = link else { return };
    let links = &mut context.state.host_links;
    let client = links.hosts_being_forgotten.remove(host);
    if result.is_ok() {
        links.links.remove(link);
        links.forgotten_hosts.insert(host.clone());
        context.effects.push(Effect::log_daemon(EventKind::HostForgotten { host: host.to_string() }));
    }
    let message = format!("cannot reach {host}: it was forgotten");
    fail_waiters(context, host, &ErrorReport::new(ErrorKind::Refused, message), |_| true);
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
