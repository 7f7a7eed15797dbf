//! Handles `teamctl home take`, which makes an annex the home of a team. The old home then refuses
//! changes of the team, and ends the members that it runs itself.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::hosts::compare_changed_files::push_job;
use crate::core::hosts::lease;
use crate::core::hosts::move_home;
use crate::core::hosts::report_homes;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::members::kill_members_for_client::abort_if_starting;
use crate::core::members::{decide_respawns_and_suspensions, forced_termination};
use crate::core::reply_to_client::send_reply;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::{living_ids, supervised_team};
use crate::core::state::host_links::{HostLink, LinkConnection};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::{budget, set_policy};
use protocol::annex_link::HomeHandover;
use protocol::control_socket::{Reply, Request, TakeHomeRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::event_log_line::EventKind;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::{MovedHome, MovingHome};

/// At the annex: makes this host the home of the team. The reply follows once the files say so.
pub(crate) fn take_home(context: &mut Context, client: ConnId, request: TakeHomeRequest) {
    let TakeHomeRequest { team } = request;
    if let Err(error) = check_takeable(context.state, &team) {
        return send_reply(context, client, Err(error));
    }
    if let Some(link) = context.state.host_links.home_of(&team).cloned() {
        push_job(context, link, MirrorJob::TakeTeam { client: Some(client), team });
    }
}

fn check_takeable(state: &State, team: &TeamName) -> Result<(), ErrorReport> {
    supervised_team(state, team)?;
    let links = &state.host_links;
    let link: Option<&HostLink> = links.home_of(team).and_then(|home| links.links.get(home));
    let (message, help) = match link.map(|link| &link.connection) {
        None => (format!("cannot take {team}: its home is this machine already"), "see: teamctl status"),
        Some(LinkConnection::Connected) => (
            format!("cannot take {team}: its home has contact"),
            "end the daemon there first, if the home must move: teamctl down",
        ),
        Some(LinkConnection::Connecting { .. } | LinkConnection::Lost { .. }) => return Ok(()),
    };
    Err(ErrorReport::new(ErrorKind::Refused, message).with_help(help))
}

/// Replies to the client that has taken a home.
pub(crate) fn reply_to_take_home(context: &mut Context, client: ConnId, result: Result<(), ErrorReport>) {
    send_reply(context, client, result.map(|()| Reply::Ack));
}

/// At the new home: the members here begin turns again, even if their lease had ended.
pub(crate) fn handle_home_taken(
    context: &mut Context,
    team: &TeamName,
    epoch: u64,
    handover: Option<Box<HomeHandover>>,
) {
    context.effects.push(Effect::log_team(team, EventKind::HomeMoved { host: None, epoch }));
    lease::end_lease_of_team(context, team);
    if let Some(handover) = handover {
        set_policy::apply_policy(context, team, handover.policy);
        budget::add_usage_of_old_home(context.state, team, epoch, handover.usage);
    }
    // The budget that the old home has sent counts no more.
    budget::check(context, team);
}

/// At a host that is neither the old nor the new home: the new home has connected on `link`. Ends
/// the mirror of the old home, with its members, because the new home does not know them.
pub(crate) fn end_mirror_of_earlier_home(context: &mut Context, link: &LinkId, team: &TeamName) {
    let links = context.state.host_links.links_of(team).filter(|other| *other != link).cloned();
    links.collect::<Vec<_>>().into_iter().for_each(|other| {
        push_job(context, other, MirrorJob::EndTeam(team.clone()));
    });
}

/// At the old home: ends the members, here and on other hosts, because the new home does not know
/// them.
pub(crate) fn handle_home_moved(context: &mut Context, team: &TeamName, moved: MovedHome) {
    report_homes::report_moved(context, team, &moved);
    // The new home may have made this host its annex already, over another link.
    if context.state.host_links.home_of(team).is_none() {
        context.state.host_links.moved_homes.insert(team.clone(), moved.clone());
    }
    end_members_of_moved_team(context, team);
    move_home::end_with_new_home(context, team, &moved);
}

/// Ends the members of a team whose home is another host, here and on the annexes.
pub(crate) fn end_members_of_moved_team(context: &mut Context, team: &TeamName) {
    let links = context.state.host_links.links_of(team).filter(|link| matches!(link, LinkId::ToAnnex(_)));
    links.cloned().collect::<Vec<_>>().into_iter().for_each(|link| {
        push_job(context, link, MirrorJob::RemoveTeam(team.clone()));
    });
    decide_respawns_and_suspensions::cancel_respawns(context, team, &[]);
    for id in living_ids(context.state, team) {
        forced_termination::terminate(context, &id);
        abort_if_starting(context, &id);
    }
}

/// Ends the members of teams that have moved. An earlier daemon may have been killed before it did.
pub(crate) fn end_members_of_moved_teams(context: &mut Context) {
    let teams: Vec<TeamName> = context.state.host_links.moved_homes.keys().cloned().collect();
    teams.iter().for_each(|team| end_members_of_moved_team(context, team));
}

/// Refuses a request that would change a team whose home has moved away from here.
pub(crate) fn check_home_is_here(state: &State, request: &Request) -> Result<(), ErrorReport> {
    let Some(team) = request.team() else { return Ok(()) };
    let links = &state.host_links;
    match (links.moved_homes.get(team), links.home_moves.get(team)) {
        (Some(moved), _) if !is_allowed_after_move(request) => Err(moved.error(team)),
        (None, Some(moving)) if !is_allowed_during_move(request) => {
            Err(MovingHome::refusal(team, &moving.host, moving.since))
        }
        _ => Ok(()),
    }
}

/// Requests that only look at the team.
fn is_allowed_during_move(request: &Request) -> bool {
    matches!(request, Request::LocatePane(_) | Request::CapturePane(_) | Request::AwaitHost(_))
}

/// Whether the old home still accepts this request after the home has moved away. It accepts
/// requests to find or capture the pane of a member, to end members, to delete the team's files on
/// this host, or to change the team's lead session.
fn is_allowed_after_move(request: &Request) -> bool {
    matches!(
        request,
        Request::DeleteTeam(_)
            | Request::Kill(_)
            | Request::Shutdown(_)
            | Request::LocatePane(_)
            | Request::CapturePane(_)
            | Request::SetLead(_)
    )
}
