//! Handles what the links to other hosts report, and loads the links when the daemon starts.

use crate::core::effect::Effect;
use crate::core::hosts::compare_changed_files::push_job;
use crate::core::hosts::confirm_task::{
    fail_waiters_of_other_teams, handle_task_checked, handle_task_decided,
};
use crate::core::hosts::forget_host;
use crate::core::hosts::lease;
use crate::core::hosts::log_events_of_annex::log_events_of_annex;
use crate::core::hosts::move_home;
use crate::core::hosts::report_homes;
use crate::core::hosts::send_budgets::send_budgets;
use crate::core::hosts::take_home;
use crate::core::hosts::use_and_await_host::{
    fail_waiters, handle_barrier_reached, stores_nothing_error, unreachable_error,
};
use crate::core::jobs::file_jobs::FileJob;
use crate::core::jobs::host_jobs::{HostEvent, LinkId, MirrorJob};
use crate::core::state::core_state::State;
use crate::core::state::host_links::{BarrierPurpose, HostLink, LinkConnection};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::{budget, delete};
use mirror::{MirrorNotice, MirroredTeamState};
use protocol::annex_link::HomeBudget;
use protocol::control_socket::DeleteTeamRequest;
use protocol::error_kind_and_report::ErrorReport;
use protocol::event_log_line::EventKind;
use protocol::team_and_member_names::TeamName;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn handle_host_event(context: &mut Context, link: &LinkId, event: HostEvent) {
    if forget_host::is_outdated(&context.state.host_links, link, &event) {
        return;
    }
    match event {
        HostEvent::TeamTaken { client, result } => take_home::reply_to_take_home(context, client, result),
        HostEvent::MoveFailed { team, error } => move_home::cancel(context, &team, error),
        HostEvent::MoveCancelled(team) => move_home::handle_cancelled(context, &team),
        HostEvent::CancelFailed { team, error } => {
            move_home::handle_cancel_failed(context, &team, &error);
        }
        HostEvent::Forgotten(result) => forget_host::handle_forgotten(context, link, result),
        HostEvent::TeamsChanged(teams) => handle_teams_changed(context, link, teams),
        HostEvent::Failed(error) => handle_failed(context, link, &error),
        HostEvent::Connected => handle_connected(context, link),
        HostEvent::Disconnected { reason } => handle_disconnected(context, link, reason),
        HostEvent::StorageThere { error } => handle_storage_there(context, link, error),
        HostEvent::TeamNotAdded { team, error } => refuse_team(context, link, &team, &error),
        HostEvent::Notice(notice) => handle_notice(context, link, notice),
        HostEvent::TaskChecked { client, result } => handle_task_checked(context, client, result),
    }
}

fn handle_notice(context: &mut Context, link: &LinkId, notice: MirrorNotice) {
    match notice {
        MirrorNotice::TeamMade { team } => handle_mirror_made(context, team),
        MirrorNotice::TeamEnded { team } => delete_mirror(context, link, team),
        MirrorNotice::HomeReplaced { team } => take_home::end_mirror_of_earlier_home(context, link, &team),
        MirrorNotice::TwoHomes { team, epoch, first, second } => {
            report_homes::report_two_homes(context, &team, epoch, (first, second));
        }
        MirrorNotice::TeamReplaced { team, copy } => report_homes::report_copy(context, &team, &copy),
        MirrorNotice::HomeTaken { team, epoch, handover } => {
            take_home::handle_home_taken(context, &team, epoch, handover);
        }
        MirrorNotice::HomeMoved { team, moved } => take_home::handle_home_moved(context, &team, moved),
        MirrorNotice::HomeDeclined { team, error } => move_home::fail(context, &team, error),
        MirrorNotice::TeamRefused { team, error } => refuse_team(context, link, &team, &error),
        MirrorNotice::MembersListed { team, members } => {
            link_mut(context, link).members.insert(team, members);
        }
        MirrorNotice::BudgetChanged { team, budget } => set_home_budget(context, link, &team, budget),
        MirrorNotice::TaskChangeAnswered { team, task, .. } => {
            handle_task_decided(context, link, &team, task);
        }
        MirrorNotice::EventsReceived { team, events } => log_events_of_annex(context, link, &team, events),
        MirrorNotice::BarrierReached { number } => {
            move_home::offer_after_barrier(context, number);
            handle_barrier_reached(context, number);
        }
    }
}

/// At the annex: applies the budget that the home has sent.
fn set_home_budget(context: &mut Context, link: &LinkId, team: &TeamName, budget: HomeBudget) {
    link_mut(context, link).budgets.insert(team.clone(), budget);
    budget::check(context, team);
}

/// Handles a new mirror: looks for the team's files, so that the daemon adds the team. If this host
/// was the team's home before, the daemon has the team already.
fn handle_mirror_made(context: &mut Context, team: TeamName) {
    context.state.host_links.moved_homes.remove(&team);
    if !context.state.teams.contains_key(&team) {
        context.effects.push(Effect::File(FileJob::FindTeam { team, waiting: None }));
    }
}

/// Deletes a mirror and ends its members. Once it is deleted, [`MirrorJob::RemoveTeam`] follows.
fn delete_mirror(context: &mut Context, link: &LinkId, team: TeamName) {
    match context.state.teams.get(&team) {
        None => push_job(context, link.clone(), MirrorJob::RemoveTeam(team)),
        Some(known) if known.deletion.is_some() => {}
        Some(_) => delete::kill_members(context, None, DeleteTeamRequest::forced(team)),
    }
}

fn handle_teams_changed(context: &mut Context, link: &LinkId, teams: BTreeSet<TeamName>) {
    fail_waiters_of_other_teams(context, link, &teams);
    let known = link_mut(context, link);
    known.members.retain(|team, _| teams.contains(team));
    known.budgets.retain(|team, _| teams.contains(team));
    let new: Vec<TeamName> = teams.difference(&known.teams).cloned().collect();
    known.teams = teams;
    send_budgets(context, link, &new);
}

fn link_mut<'a>(context: &'a mut Context, link: &LinkId) -> &'a mut HostLink {
    let now = context.now.wall;
    context.state.host_links.links.entry(link.clone()).or_insert_with(|| HostLink::new(now))
}

/// A link has connected. The home sends all unanswered barriers again, because an annex that was
/// killed has forgotten them. A barrier is an item that the annex answers once it has handled all
/// earlier items. Clients of the home wait for the answers.
fn handle_connected(context: &mut Context, link: &LinkId) {
    link_mut(context, link).connection = LinkConnection::Connected;
    link_mut(context, link).storage_error = None;
    let LinkId::ToAnnex(host) = link else { return lease::renew_lease(context, link) };
    log_host(context, EventKind::HostConnected { host: host.to_string() });
    // A crash of either daemon can have lost the last change.
    let teams: Vec<TeamName> = link_mut(context, link).teams.iter().cloned().collect();
    send_budgets(context, link, &teams);
    let waiters = context.state.host_links.barrier_waiters.iter().filter(|waiter| waiter.host == *host);
    let barriers: Vec<u64> = waiters.map(|waiter| waiter.barrier).collect();
    barriers.into_iter().for_each(|barrier| push_job(context, link.clone(), MirrorJob::SendBarrier(barrier)));
}

fn handle_disconnected(context: &mut Context, link: &LinkId, reason: String) {
    let now = context.now.wall;
    let connection = &mut link_mut(context, link).connection;
    let (since, is_known) = match connection {
        LinkConnection::Lost { since, .. } => (*since, true),
        LinkConnection::Connecting { since } => (*since, false),
        LinkConnection::Connected => (now, false),
    };
    *connection = LinkConnection::Lost { since, reason: reason.clone() };
    link_mut(context, link).storage_error = None;
    let LinkId::ToAnnex(host) = link else { return lease::begin_leases(context) };
    if !is_known {
        log_host(context, EventKind::HostLost { host: host.to_string(), reason: reason.clone() });
    }
    let error = unreachable_error(host, &reason);
    fail_waiters(context, host, &error, |waiter| waiter.purpose == BarrierPurpose::UseHost);
    move_home::end_waits_for_host(context, host, &error);
}

/// The other host cannot write its files, or can again. A move need not wait for its disk.
fn handle_storage_there(context: &mut Context, link: &LinkId, error: Option<String>) {
    link_mut(context, link).storage_error.clone_from(&error);
    if let (LinkId::ToAnnex(host), Some(reason)) = (link, error) {
        move_home::end_waits_for_host(context, host, &stores_nothing_error(host, &reason));
    }
}

/// The link does not go on until this host can read and write its files. A move need not wait for
/// that.
fn handle_failed(context: &mut Context, link: &LinkId, error: &ErrorReport) {
    let subject = match link {
        LinkId::ToAnnex(host) => format!("the link to {host}"),
        LinkId::ToHome(home) => format!("the link to the home {}", home.home.as_str()),
    };
    let message = format!("{subject}: {}", error.message);
    log_host(context, EventKind::Error { message });
    if let LinkId::ToAnnex(host) = link {
        move_home::end_waits_for_host(context, host, error);
    }
}

/// Logs why the host does not mirror the team, and replies to the clients that wait for that.
fn refuse_team(context: &mut Context, link: &LinkId, team: &TeamName, error: &ErrorReport) {
    if let LinkId::ToAnnex(host) = link {
        let message = format!("{host}: {}", error.message);
        context.effects.push(Effect::log_team(team, EventKind::Error { message }));
        fail_waiters(context, host, error, |waiter| waiter.team == *team);
    }
}

fn log_host(context: &mut Context, event: EventKind) {
    context.effects.push(Effect::log_daemon(event));
}

/// Adds the links that exist when the daemon starts, with their mirrored teams.
pub(crate) fn load_links(
    state: &mut State,
    links: Vec<(LinkId, BTreeMap<TeamName, MirroredTeamState>)>,
    now: u64,
) {
    for (id, teams) in links {
        let mut link = HostLink::new(now);
        for (team, MirroredTeamState { members, budget }) in teams {
            link.members.insert(team.clone(), members);
            link.budgets.insert(team.clone(), budget);
            link.teams.insert(team);
        }
        state.host_links.links.insert(id, link);
    }
}

/// Ends the mirrors of teams that do not exist any more. An earlier daemon may have been killed
/// before it did this.
pub(crate) fn remove_mirrors_of_deleted_teams(context: &mut Context) {
    let links = context.state.host_links.links.iter();
    let teams = links.flat_map(|(id, link)| link.teams.iter().map(move |team| (id.clone(), team.clone())));
    let deleted: Vec<_> = teams.filter(|(_, team)| !context.state.teams.contains_key(team)).collect();
    deleted.into_iter().for_each(|(link, team)| push_job(context, link, MirrorJob::RemoveTeam(team)));
}
