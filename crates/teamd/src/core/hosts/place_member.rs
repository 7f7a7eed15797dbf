//! Chooses the host of a new member, and reserves a slot there in the same step. So two commands at
//! once do not take the same slot.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::hosts::choose_host::{NoHostFits, choose_host};
use crate::core::jobs::host_jobs::LinkId;
use crate::core::reply_to_client::send_reply;
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::has_limits;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state::host_links::ReservedSlot;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{MemberHost, PlaceMemberReply, PlaceMemberRequest, Reply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::hosts_file_entry::HostName;
use protocol::policy::Policy;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::BTreeSet;

pub(crate) fn place_member(context: &mut Context, client: ConnId, request: PlaceMemberRequest) {
    let result = choose(context.state, &request);
    let reply = result.map(|host| {
        let PlaceMemberRequest { team, name: member, .. } = request;
        let slot = ReservedSlot { client, host: host.clone(), team, member };
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
    let used = |host: &MemberHost| members_on(state, host).len() as u64;
    let chosen = choose_host(&request.candidates, &request.needs, used);
    let chosen = chosen.cloned().map_err(|reasons| no_host_error(&request.name, &reasons))?;
    match &chosen {
        MemberHost::Other(host) if has_limits(&supervised_team(state, &request.team)?.policy) => {
            Err(budget_error(&request.team, host))
        }
        _ => Ok(chosen),
    }
}

/// Another host counts what its members use by itself, and reports nothing.
fn budget_error(team: &TeamName, host: &HostName) -> ErrorReport {
    let message =
        format!("cannot start a member of {team} on {host}: the budget of its policy covers only its home");
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
        "leave out --host, or set a policy without a budget: teamctl policy FILE -t {team}"
    ))
}

/// Checks that a new policy has no budget while the team has members on other hosts, or members that
/// are being placed there.
///
/// # Errors
///
/// `Refused`.
pub(crate) fn check_budget_reaches_members(
    state: &State,
    team: &TeamName,
    policy: &Policy,
) -> Result<(), ErrorReport> {
    let links = state.host_links.links.iter();
    let mut listed = links.filter_map(|(link, entry)| match link {
        LinkId::ToAnnex(host) if entry.members.get(team).is_some_and(|names| !names.is_empty()) => Some(host),
        _ => None,
    });
    let mut reserved = state.host_links.reserved_slots.iter().filter_map(|slot| match &slot.host {
        MemberHost::Other(host) if slot.team == *team => Some(host),
        _ => None,
    });
    match listed.next().or_else(|| reserved.next()).filter(|_| has_limits(policy)) {
        None => Ok(()),
        Some(host) => {
            let message = format!("cannot set a budget for {team}: it does not cover its members on {host}");
            Err(ErrorReport::new(ErrorKind::Refused, message)
                .with_help("end these members first, or leave the limits out of the policy"))
        }
    }
}

/// The members on a host, of all teams, with those that are being placed there. A member that a
/// client is spawning counts once, also if it is listed already.
fn members_on<'s>(state: &'s State, host: &MemberHost) -> BTreeSet<(&'s TeamName, &'s MemberName)> {
    let reserved = state.host_links.reserved_slots.iter().filter(|slot| slot.host == *host);
    let mut members: BTreeSet<_> = reserved.map(|slot| (&slot.team, &slot.member)).collect();
    match host {
        MemberHost::Home => {
            let requests = state.agents.values().map(|agent| &agent.record.request);
            members.extend(requests.map(|request| (&request.team, &request.name)));
        }
        MemberHost::Other(host) => {
            let link = state.host_links.links.get(&LinkId::ToAnnex(host.clone()));
            let teams = link.into_iter().flat_map(|link| &link.members);
            members.extend(teams.flat_map(|(team, names)| names.iter().map(move |name| (team, name))));
        }
    }
    members
}

fn no_host_error(name: &MemberName, NoHostFits(reasons): &NoHostFits) -> ErrorReport {
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
