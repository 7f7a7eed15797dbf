//! At the home: prepares a host to run members of a team, and waits until a host's changes are
//! here. A *barrier* is an item that the host answers once it has handled all earlier items.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::hosts::compare_changed_files::push_job;
use crate::core::jobs::host_jobs::{ConnectAttempt, HostJob, LinkId, MirrorJob};
use crate::core::reply_to_client::send_reply;
use crate::core::state::call_errors::check_not_deleting;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::host_links::{BarrierPurpose, BarrierWaiter, HostLink, HostLinks, LinkConnection};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{AwaitHostRequest, Reply, UseHostRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;

/// How long a host may take to answer a barrier, in milliseconds.
pub(crate) const HOST_TIMEOUT: u64 = 60_000;

/// Connects to the host and mirrors the team there. The reply follows when the mirror exists.
pub(crate) fn use_host(context: &mut Context, client: ConnId, request: UseHostRequest) {
    if let Err(error) = check_usable(context.state, &request) {
        return send_reply(context, client, Err(error));
    }
    let UseHostRequest { team, host, command } = request;
    let attempt = begin_attempt(context, &host);
    let barrier = add_waiter(context, client, (&team, &host), BarrierPurpose::UseHost);
    let job = HostJob::UseHost { host, command, attempt, team, barrier };
    context.effects.push(Effect::Host(job));
}

fn check_usable(state: &State, request: &UseHostRequest) -> Result<(), ErrorReport> {
    let (team, host) = (&request.team, &request.host);
    check_not_deleting(team, supervised_team(state, team)?)?;
    check_not_being_forgotten(&state.host_links, host)?;
    if state.host_links.home_of(team).is_some() {
        return Err(not_home_error(&format!("use {host} for"), team));
    }
    match request.command.is_empty() {
        true => Err(ErrorReport::new(ErrorKind::Usage, format!("cannot use {host}: it has no command"))),
        false => Ok(()),
    }
}

/// The error for a command at an annex that only works at the home.
pub(crate) fn not_home_error(action: &str, team: &TeamName) -> ErrorReport {
    let message = format!("cannot {action} {team}: this host has only a mirror of the team");
    ErrorReport::new(ErrorKind::Refused, message).with_help("run the command at its home")
}

/// Refuses a request about a host that is being forgotten.
pub(crate) fn check_not_being_forgotten(links: &HostLinks, host: &HostName) -> Result<(), ErrorReport> {
    match links.hosts_being_forgotten.contains_key(host) {
        true => {
            let message = format!("cannot use {host}: it is being forgotten");
            Err(ErrorReport::new(ErrorKind::Refused, message).with_help("try again in a moment"))
        }
        false => Ok(()),
    }
}

/// Refuses a request about a host that would not answer, because it stores nothing.
pub(crate) fn check_storage(links: &HostLinks, host: &HostName) -> Result<(), ErrorReport> {
    let link = links.links.get(&LinkId::ToAnnex(host.clone()));
    link.and_then(|link| link.storage_error.as_ref())
        .map_or(Ok(()), |reason| Err(stores_nothing_error(host, reason)))
}

pub(crate) fn stores_nothing_error(host: &HostName, reason: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::Refused, format!("cannot use {host}: it stores nothing: {reason}"))
        .with_help("repair the cause there, such as a full disk; is it repaired? see: teamctl status")
}

/// Decides when the link to the host connects. If the link has lost its connection, it connects at
/// once. Otherwise the link is connected, or tries to connect again by itself.
fn begin_attempt(context: &mut Context, host: &HostName) -> ConnectAttempt {
    context.state.host_links.forgotten_hosts.remove(host);
    let (links, now) = (&mut context.state.host_links.links, context.now.wall);
    let link = links.entry(LinkId::ToAnnex(host.clone())).or_insert_with(|| HostLink::new(now));
    match link.connection {
        LinkConnection::Lost { since, .. } => {
            link.connection = LinkConnection::Connecting { since };
            ConnectAttempt::Now
        }
        LinkConnection::Connecting { .. } | LinkConnection::Connected => ConnectAttempt::WhenDue,
    }
}

fn add_waiter(
    context: &mut Context,
    client: ConnId,
    (team, host): (&TeamName, &HostName),
    purpose: BarrierPurpose,
) -> u64 {
    let barrier = context.state.request_ids.next(context.now.wall);
    let deadline = context.now.mono + HOST_TIMEOUT;
    let (team, host) = (team.clone(), host.clone());
    let waiter = BarrierWaiter { client, host, team, barrier, deadline, purpose };
    context.state.host_links.barrier_waiters.push(waiter);
    barrier
}

/// Replies once the files here have everything that the host had before the call.
pub(crate) fn await_host(context: &mut Context, client: ConnId, request: &AwaitHostRequest) {
    let AwaitHostRequest { team, host } = request;
    let link = LinkId::ToAnnex(host.clone());
    if !context.state.host_links.links_of(team).any(|other| *other == link) {
        let message = format!("cannot wait for {host}: it runs no members of {team}");
        return send_reply(context, client, Err(ErrorReport::new(ErrorKind::NotFound, message)));
    }
    let barrier = add_waiter(context, client, (team, host), BarrierPurpose::AwaitHost);
    push_job(context, link, MirrorJob::SendBarrier(barrier));
}

/// Replies to the clients whose host has taken too long.
pub(crate) fn fail_overdue_waiters(context: &mut Context) {
    let now = context.now.mono;
    for waiter in context.state.host_links.take_waiters(|waiter| waiter.deadline <= now) {
        let link = context.state.host_links.links.get(&LinkId::ToAnnex(waiter.host.clone()));
        let error = match link.map(|link| &link.connection) {
            Some(LinkConnection::Lost { reason, .. }) => unreachable_error(&waiter.host, reason),
            _ => {
                let message = format!("cannot reach {}: it has not answered within 60 s", waiter.host);
                host_error(ErrorKind::Timeout, &waiter.host, message)
            }
        };
        send_reply(context, waiter.client, Err(error));
    }
}

/// Replies with an error to the clients that wait for this host and for which `is_failed` is true.
pub(crate) fn fail_waiters(
    context: &mut Context,
    host: &HostName,
    error: &ErrorReport,
    is_failed: impl Fn(&BarrierWaiter) -> bool,
) {
    let links = &mut context.state.host_links;
    for waiter in links.take_waiters(|waiter| waiter.host == *host && is_failed(waiter)) {
        send_reply(context, waiter.client, Err(error.clone()));
    }
}

pub(crate) fn unreachable_error(host: &HostName, reason: &str) -> ErrorReport {
    host_error(ErrorKind::Io, host, format!("cannot reach {host}: {reason}"))
}

fn host_error(kind: ErrorKind, host: &HostName, message: String) -> ErrorReport {
    ErrorReport::new(kind, message).with_help(format!("teamctl hosts check {host}"))
}

/// Replies to the clients that have waited for this barrier.
pub(crate) fn handle_barrier_reached(context: &mut Context, barrier: u64) {
    for waiter in context.state.host_links.take_waiters(|waiter| waiter.barrier == barrier) {
        send_reply(context, waiter.client, Ok(Reply::Ack));
    }
}
