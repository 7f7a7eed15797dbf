//! At the annex: the lease. Without contact with the home, members begin new turns only until the
//! lease ends. Running turns go on, and the spool keeps their messages and other changes for the
//! home.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::{Effect, Wake};
use crate::core::jobs::host_jobs::LinkId;
use crate::core::state::find_team_or_member::living_ids;
use crate::core::state::host_links::{Lease, LinkConnection};
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::turns::apply_reported_turns_and_activity::apply_turn_state;
use protocol::control_socket::{ToShim, TurnStatus};
use protocol::delivery_kind::Delivery;
use protocol::team_and_member_names::TeamName;

/// Begins the lease of each link to a home that has no contact. A lease that has begun already is
/// not changed.
pub(crate) fn begin_leases(context: &mut Context) {
    let Some(lease_ms) = context.state.settings.lease_ms else { return };
    for (id, link) in &mut context.state.host_links.links {
        let since = match &link.connection {
            LinkConnection::Connecting { since } | LinkConnection::Lost { since, .. } => *since,
            LinkConnection::Connected => continue,
        };
        if matches!(id, LinkId::ToHome(_)) && link.lease == Lease::Unlimited {
            link.lease = Lease::Running { since, ends_at: context.now.mono.saturating_add(lease_ms) };
        }
    }
}

/// Holds the turns of the members whose lease has ended.
pub(crate) fn end_due_leases(context: &mut Context) {
    let mut held = Vec::new();
    for link in context.state.host_links.links.values_mut() {
        match link.lease {
            Lease::Running { since, ends_at } if ends_at <= context.now.mono => {
                link.lease = Lease::Ended { since };
                held.extend(link.teams.iter().cloned());
            }
            _ => {}
        }
    }
    apply_leases(context, &held);
}

/// The home has contact again, so the members of its teams may begin turns again. The daemon tells
/// this to all shims, because an earlier daemon may have told some of them to hold turns.
pub(crate) fn renew_lease(context: &mut Context, link: &LinkId) {
    let Some(link) = context.state.host_links.links.get_mut(link) else { return };
    link.lease = Lease::Unlimited;
    let teams: Vec<TeamName> = link.teams.iter().cloned().collect();
    apply_leases(context, &teams);
}

fn apply_leases(context: &mut Context, teams: &[TeamName]) {
    for id in teams.iter().flat_map(|team| living_ids(context.state, team)).collect::<Vec<_>>() {
        apply_lease(context, &id);
    }
}

/// Tells the shim of a running agent whether the agent may begin turns. While a lease runs, the
/// shim is told nothing, so it goes on as before.
pub(crate) fn apply_lease(context: &mut Context, id: &SpawnId) {
    let Some(agent) = context.state.agents.get(id) else { return };
    let links = &context.state.host_links;
    let link = links.home_of(&agent.record.request.team).and_then(|home| links.links.get(home));
    match link.map(|link| (link.lease, &link.connection)) {
        Some((Lease::Ended { since }, _)) => set_no_contact(context, id, Some(since)),
        Some((Lease::Unlimited, LinkConnection::Connected)) => set_no_contact(context, id, None),
        _ => {}
    }
}

/// This host is the home of the team now, so its members need no contact.
pub(crate) fn end_lease_of_team(context: &mut Context, team: &TeamName) {
    living_ids(context.state, team).iter().for_each(|id| set_no_contact(context, id, None));
}

fn set_no_contact(context: &mut Context, id: &SpawnId, since: Option<u64>) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    agent.no_contact_since = since;
    let conn = agent.record.lifecycle.process().conn;
    match (agent.record.request.delivery, conn) {
        (Delivery::Turn | Delivery::Acp, Some(conn)) => {
            let message = since
                .map_or(ToShim::ContinueTurns, |no_contact_since| ToShim::HoldTurns { no_contact_since });
            context.effects.push(Effect::SendToShim { conn, message });
        }
        (Delivery::Hook, _) => {
            let pause = agent.no_contact_pause();
            let turn = agent.turn.clone().filter(|turn| turn.pause != pause);
            apply_turn_state(context, id, turn.map(|turn| TurnStatus { pause, ..turn }));
            if since.is_none() {
                context.effects.wake_agent(id, Wake::Needed);
            }
        }
        _ => {}
    }
}
