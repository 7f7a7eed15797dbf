//! At the home: moves the home of a team to an annex that has contact. First the home sends a
//! barrier. When the annex has answered it, each of the two hosts has all changes of the other.
//! Then the home offers the annex to be the new home.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::hosts::compare_changed_files::push_job;
use crate::core::hosts::use_and_await_host::{
    HOST_TIMEOUT, check_not_being_forgotten, check_storage, not_home_error, unreachable_error,
};
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::reply_to_client::send_reply;
use crate::core::state::call_errors::check_not_deleting;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::home_move::{HomeMove, HomeMoveStep, MoveWaiter};
use crate::core::state::host_links::LinkConnection;
use crate::core::state::taken_and_free_member_names::names_between_spawns;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use protocol::control_socket::{MoveHomeRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{LocalWork, MovedHome};

/// How long a client waits until a move is cancelled, in milliseconds.
const CANCEL_TIMEOUT: u64 = 5_000;

/// Begins a move. The reply follows when the host is the home, or when the move has failed.
pub(crate) fn move_home(context: &mut Context, client: ConnId, request: MoveHomeRequest) {
    if let Err(error) = check_movable(context.state, &request) {
        return send_reply(context, client, Err(error));
    }
    let MoveHomeRequest { team, host } = request;
    let barrier = context.state.request_ids.next(context.now.wall);
    let (step, since) = (HomeMoveStep::Exchanging { barrier }, context.now.wall);
    let waiter = Some(MoveWaiter { client, deadline: context.now.mono + HOST_TIMEOUT });
    let link = LinkId::ToAnnex(host.clone());
    context.state.host_links.home_moves.insert(team.clone(), HomeMove { host, since, step, waiter });
    push_job(context, link, MirrorJob::BeginMove { team, barrier });
}

/// The error is `NotFound` if a client must use the host first, so that it has a mirror of the team
/// and a connection.
fn check_movable(state: &State, request: &MoveHomeRequest) -> Result<(), ErrorReport> {
    let MoveHomeRequest { team, host } = request;
    check_not_deleting(team, supervised_team(state, team)?)?;
    check_not_being_forgotten(&state.host_links, host)?;
    if state.host_links.home_of(team).is_some() {
        return Err(not_home_error("move the home of", team));
    }
    let link = state.host_links.links.get(&LinkId::ToAnnex(host.clone()));
    let Some(link) = link.filter(|link| link.teams.contains(team)) else {
        let message = format!("cannot move {team} to {host}: {host} has no mirror of it");
        return Err(ErrorReport::new(ErrorKind::NotFound, message).with_help("see the hosts: teamctl hosts"));
    };
    match &link.connection {
        LinkConnection::Connected => {
            check_storage(&state.host_links, host)?;
            check_members(state, request)
        }
        LinkConnection::Lost { reason, .. } => Err(no_connection_error(host, reason)),
        LinkConnection::Connecting { .. } => Err(no_connection_error(host, "not connected yet")),
    }
}

fn no_connection_error(host: &HostName, reason: &str) -> ErrorReport {
    ErrorReport { kind: ErrorKind::NotFound, ..unreachable_error(host, reason) }
}

/// All members must run on the host that is to be the home, because it has no connection to others.
fn check_members(state: &State, request: &MoveHomeRequest) -> Result<(), ErrorReport> {
    let MoveHomeRequest { team, host } = request;
    let here = state.members(team).into_iter().map(|agent| agent.record.request.name.to_string());
    let other_links = state.host_links.links.iter().filter(|(id, _)| **id != LinkId::ToAnnex(host.clone()));
    let elsewhere = other_links.filter_map(|(_, link)| link.members.get(team)).flatten();
    let members = here.chain(names_between_spawns(state, team)).chain(elsewhere.map(ToString::to_string));
    let members: Vec<String> = members.collect();
    if members.is_empty() {
        return check_no_spawn(state, request);
    }
    let message =
        format!("cannot move {team} to {host}: these members run elsewhere: {}", members.join(", "));
    let names = members.join(" ");
    Err(ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("end these members first: teamctl shutdown {names}")))
}

fn check_no_spawn(state: &State, request: &MoveHomeRequest) -> Result<(), ErrorReport> {
    let MoveHomeRequest { team, host } = request;
    let spawned = state.host_links.reserved_slots.iter().find(|slot| slot.team == *team);
    spawned.map_or(Ok(()), |slot| {
        let message = format!("cannot move {team} to {host}: {} is being spawned", slot.member);
        Err(ErrorReport::new(ErrorKind::Refused, message).with_help("try again in a moment"))
    })
}

/// The host has answered the barrier of a move: offers it the home.
pub(crate) fn offer_after_barrier(context: &mut Context, number: u64) {
    let moves = context.state.host_links.home_moves.iter_mut();
    let is_reached = |moving: &HomeMove| match moving.step {
        HomeMoveStep::Exchanging { barrier } => barrier == number,
        HomeMoveStep::Cancelling { .. } | HomeMoveStep::Offered => false,
    };
    let Some((team, moving)) = moves.into_iter().find(|(_, moving)| is_reached(moving)) else { return };
    moving.step = HomeMoveStep::Offered;
    if let Some(waiter) = &mut moving.waiter {
        waiter.deadline = context.now.mono + HOST_TIMEOUT;
    }
    let (link, team) = (LinkId::ToAnnex(moving.host.clone()), team.clone());
    let usage = budget::usage_for_new_home(context.state, &team);
    push_job(context, link, MirrorJob::OfferHome { team, usage });
}

/// Cancels a move whose offer was not sent. The client gets its reply once this host accepts
/// changes of the team again.
pub(crate) fn cancel(context: &mut Context, team: &TeamName, error: ErrorReport) {
    let Some(moving) = context.state.host_links.home_moves.get_mut(team) else { return };
    moving.step = HomeMoveStep::Cancelling { error };
    if let Some(waiter) = &mut moving.waiter {
        waiter.deadline = context.now.mono + CANCEL_TIMEOUT;
    }
    let link = LinkId::ToAnnex(moving.host.clone());
    push_job(context, link, MirrorJob::CancelMove(team.clone()));
}

pub(crate) fn handle_cancelled(context: &mut Context, team: &TeamName) {
    let step = context.state.host_links.home_moves.get(team).map(|moving| &moving.step);
    if let Some(HomeMoveStep::Cancelling { error }) = step {
        let error = error.clone();
        fail(context, team, error);
    }
}

/// Ends a move that has failed. The home is here.
pub(crate) fn fail(context: &mut Context, team: &TeamName, error: ErrorReport) {
    let message = format!("{}; the home of {team} is here as before", error.message);
    finish(context, team, Err(ErrorReport { message, ..error }));
}

/// Ends a move whose team has another home now.
pub(crate) fn end_with_new_home(context: &mut Context, team: &TeamName, moved: &MovedHome) {
    let result = match moved.work {
        LocalWork::HandedOver => Ok(()),
        LocalWork::OnlyHere => Err(taken_home_error(team, moved)),
    };
    finish(context, team, result);
}

fn finish(context: &mut Context, team: &TeamName, result: Result<(), ErrorReport>) {
    let Some(moving) = context.state.host_links.home_moves.remove(team) else { return };
    if let Some(MoveWaiter { client, .. }) = moving.waiter {
        send_reply(context, client, result.map(|()| Reply::Ack));
    }
}

/// The new home did not say that it has what was done here.
fn taken_home_error(team: &TeamName, moved: &MovedHome) -> ErrorReport {
    let MovedHome { host, epoch, .. } = moved;
    let message = format!(
        "cannot move {team}: {host} took its home without this machine (epoch {epoch}), and lacks what was done here since its last contact"
    );
    ErrorReport::new(ErrorKind::Partial, message)
        .with_help(format!("keep what is only here: teamctl export {team}"))
}

/// A move could not be cancelled, because this host could not read or write its files. Replies to
/// the client now. The cancellation is tried again, and until then this host does not change the
/// team.
pub(crate) fn handle_cancel_failed(context: &mut Context, team: &TeamName, cause: &ErrorReport) {
    let condition = format!("once teamd can write its files: {}", cause.message);
    reply_while_cancelling(context, team, &condition);
}

/// Replies to the client of a move that is being cancelled. `condition` says when this host changes
/// the team again.
fn reply_while_cancelling(context: &mut Context, team: &TeamName, condition: &str) {
    let Some(moving) = context.state.host_links.home_moves.get(team) else { return };
    let HomeMoveStep::Cancelling { error } = &moving.step else { return };
    let message = format!("{}; {team} can be changed here again {condition}", error.message);
    let error = ErrorReport { message, ..error.clone() }
        .with_help(format!("can it be changed? see: teamctl status -t {team}"));
    reply_before_end(context, team, error);
}

/// Replies to the client of a move that goes on.
fn reply_before_end(context: &mut Context, team: &TeamName, error: ErrorReport) {
    let moving = context.state.host_links.home_moves.get_mut(team);
    if let Some(MoveWaiter { client, .. }) = moving.and_then(|moving| moving.waiter.take()) {
        send_reply(context, client, Err(error));
    }
}

/// The host has no contact or can't write its files, or this host can't write the link's files.
/// Cancels the moves to the host whose offer was not sent. For the others, replies to the clients.
pub(crate) fn end_waits_for_host(context: &mut Context, host: &HostName, error: &ErrorReport) {
    let moves = context.state.host_links.home_moves.iter().filter(|(_, moving)| moving.host == *host);
    for team in moves.map(|(team, _)| team.clone()).collect::<Vec<_>>() {
        end_wait(context, &team, error.clone());
    }
}

/// Ends the waits of clients that have taken too long.
pub(crate) fn end_overdue_waits(context: &mut Context) {
    let now = context.now.mono;
    let is_due = |moving: &HomeMove| moving.waiter.as_ref().is_some_and(|waiter| waiter.deadline <= now);
    let moves = context.state.host_links.home_moves.iter().filter(|(_, moving)| is_due(moving));
    let due: Vec<_> = moves.map(|(team, moving)| (team.clone(), moving.host.clone())).collect();
    for (team, host) in due {
        reply_while_cancelling(context, &team, "once the move is cancelled");
        let message = format!("cannot move {team} to {host}: {host} has not answered within 60 s");
        end_wait(context, &team, ErrorReport::new(ErrorKind::Timeout, message));
    }
}

/// Cancels a move, unless the home was offered: then only its client gets a reply.
fn end_wait(context: &mut Context, team: &TeamName, error: ErrorReport) {
    match context.state.host_links.home_moves.get(team) {
        Some(HomeMove { step: HomeMoveStep::Exchanging { .. }, .. }) => cancel(context, team, error),
        Some(HomeMove { step: HomeMoveStep::Offered, host, .. }) => {
            let error = undecided_error(team, host, &error);
            reply_before_end(context, team, error);
        }
        Some(HomeMove { step: HomeMoveStep::Cancelling { .. }, .. }) | None => {}
    }
}

/// The home was offered to the host, which has not answered. The offer may still wait here.
fn undecided_error(team: &TeamName, host: &HostName, error: &ErrorReport) -> ErrorReport {
    let message = format!(
        "{}; the home of {team} is offered to {host}: until {host} answers, this machine does not change {team}",
        error.message
    );
    ErrorReport::new(ErrorKind::Partial, message).with_help(format!(
        "{host} answers as soon as both have contact and can write their files: teamctl status -t {team}; if it is lost for good: teamctl hosts forget {host}"
    ))
}

/// A host with a move was forgotten: the home stays here.
pub(crate) fn end_moves_to_forgotten_host(context: &mut Context, host: &HostName) {
    let moves = context.state.host_links.home_moves.iter().filter(|(_, moving)| moving.host == *host);
    for team in moves.map(|(team, _)| team.clone()).collect::<Vec<_>>() {
        let message = format!("cannot move {team} to {host}: it was forgotten");
        fail(context, &team, ErrorReport::new(ErrorKind::Refused, message));
    }
}
