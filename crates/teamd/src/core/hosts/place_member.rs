//! Chooses the host of a new member, and reserves a slot there in the same step. So two commands at
//! once do not take the same slot.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::hosts::choose_host::{NoHostFits, choose_host};
use crate::core::jobs::host_jobs::LinkId;
use crate::core::reply_to_client::send_reply;
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::exhausted_error;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::host_links::ReservedSlot;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{MemberHost, PlaceMemberReply, PlaceMemberRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeSet;

pub(crate) fn place_member(context: &mut Context, client: ConnId, request: PlaceMemberRequest) {
    let result = choose(context.state, &request);
    let reply = result.map(|host| {
        let PlaceMemberRequest { team, name: member, .. } = request;
        let before = members_on(context.state, &host).into_iter().filter(|(other, _)| **other == team);
        let members_before = before.map(|(_, name)| name.clone()).collect();
        let slot = ReservedSlot { client, host: host.clone(), team, member, members_before };
        context.state.host_links.reserved_slots.push(slot);
        Reply::PlaceMember(PlaceMemberReply { host })
    });
    send_reply(context, client, reply);
}

/// Releases the slots of a client whose connection was closed.
pub(crate) fn release_slots(state: &mut State, client: ConnId) {
    state.host_links.reserved_slots.retain(|slot| slot.client != client);
}

fn choose(state: &State, request: &PlaceMemberRequest) -> Result<MemberHost, ErrorReport> {
    supervised_team(state, &request.team)?;
    if state.host_links.home_of(&request.team).is_some() {
        let message = format!("cannot place {}: this host has only a mirror of its team", request.name);
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help("run the command at its home"));
    }
    if let Some(error) = exhausted_error(state, &request.team) {
        return Err(error);
    }
    let used = |host: &MemberHost| used_slots(state, host);
    let chosen = choose_host(&request.candidates, &request.needs, used);
    chosen.cloned().map_err(|NoHostFits(reasons)| no_host_error(&request.name, &reasons))
}

/// The number of slots in use on a host: one for each member, and one for each reservation whose
/// member is not listed yet.
///
/// A reservation ends shortly after its member is listed. Until then, the member and its
/// reservation must not both be counted. So a reservation is not counted if a listed member has the
/// reserved name or, with `--unique`, the reserved name followed by a number.
fn used_slots(state: &State, host: &MemberHost) -> u64 {
    let members = members_on(state, host);
    let count = members.len();
    let mut unreserved = members;
    let mut unplaced = 0;
    for slot in state.host_links.reserved_slots.iter().filter(|slot| slot.host == *host) {
        match unreserved.iter().find(|(team, member)| slot.may_be_for(team, member)).copied() {
            Some(placed) => drop(unreserved.remove(&placed)),
            None => unplaced += 1,
        }
    }
    (count + unplaced) as u64
}

/// The members of all teams that take a slot on a host. Members that are suspended or wait for a
/// respawn take a slot only on this host, because other hosts do not list them.
fn members_on<'s>(state: &'s State, host: &MemberHost) -> BTreeSet<(&'s TeamName, &'s MemberName)> {
    match host {
        MemberHost::Home => {
            let running = state.agents.values().map(|agent| &agent.record.request);
            let pending = state.pending_respawns.iter().map(|pending| &pending.request);
            running.chain(pending).map(|request| (&request.team, &request.name)).collect()
        }
        MemberHost::Other(host) => {
            let link = state.host_links.links.get(&LinkId::ToAnnex(host.clone()));
            let teams = link.into_iter().flat_map(|link| &link.members);
            teams.flat_map(|(team, names)| names.iter().map(move |name| (team, name))).collect()
        }
    }
}

fn no_host_error(name: &MemberName, reasons: &[String]) -> ErrorReport {
    let (reasons, help) = match reasons.is_empty() {
        true => (
            "there is no host to choose from".to_owned(),
            "describe hosts, and this machine as [host.home], in the hosts file: teamctl hosts",
        ),
        false => (
            reasons.join(", "),
            "end a member there, change labels or slots in the hosts file, or name a host with --host",
        ),
    };
    let message = format!("cannot place {name} on a host: {reasons}");
    ErrorReport::new(ErrorKind::Refused, message).with_help(help)
}
