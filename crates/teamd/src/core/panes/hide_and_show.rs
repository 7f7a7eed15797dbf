//! Hides and shows the panes of members. A client gets its reply once the pane was moved, and the
//! roster and config.json have the change. The agent in a hidden pane runs on.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use crate::core::effect::Effect;
use crate::core::jobs::pane_jobs::{PaneJob, PaneMove, PaneVisibility};
use crate::core::panes::hidden_panes_in_config::write_hidden_panes;
use crate::core::reply_to_client::send_reply;
use crate::core::state::call_errors::{iterm2_error, no_pane_error};
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::{find_member, pane_and_tag};
use crate::core::state::pane_neighbors_and_layout::{pane_neighbors, person_pane, team_layout};
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{MemberAddress, Reply, SpawnRequest, VisibilityReply};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use std::collections::BTreeSet;
use tmux::{PaneId, PaneTag};

/// Hides or shows the pane of a member.
pub(crate) fn set_visibility(
    context: &mut Context,
    client: ConnId,
    address: &MemberAddress,
    visibility: PaneVisibility,
) {
    match pane_move(context.state, address, visibility) {
        Err(error) => send_reply(context, client, Err(error)),
        Ok(pane_move) => {
            let pane_move = Box::new(pane_move);
            context.effects.push(Effect::Pane(PaneJob::MovePane { client: Some(client), pane_move }));
        }
    }
}

/// Hides the pane of a member that has started again, if the pane of its last spawn was hidden.
pub(crate) fn hide_again(context: &mut Context, spawn: &SpawnId) {
    let Some(record) = context.state.agents.get(spawn).map(|agent| &agent.record) else { return };
    if !record.respawn.is_hidden || record.is_hidden {
        return;
    }
    let SpawnRequest { team, name, .. } = &*record.request;
    let address = MemberAddress { team: team.clone(), name: name.to_string() };
    // A member without a pane has nothing to hide.
    if let Ok(pane_move) = pane_move(context.state, &address, PaneVisibility::Hidden) {
        let pane_move = Box::new(pane_move);
        context.effects.push(Effect::Pane(PaneJob::MovePane { client: None, pane_move }));
    }
}

fn pane_move(
    state: &State,
    address: &MemberAddress,
    visibility: PaneVisibility,
) -> Result<PaneMove, ErrorReport> {
    let verb = if visibility == PaneVisibility::Hidden { "hide" } else { "show" };
    let (pane, owner) = pane_and_tag(state, &address.team, &address.name, verb)?;
    if pane.it2.is_some() {
        return Err(iterm2_error(&address.team, &address.name, verb));
    }
    let record = &find_member(state, &address.team, &address.name)?.record;
    Ok(PaneMove {
        spawn: record.spawn_id.clone(),
        team: address.team.clone(),
        pane: pane.id().ok_or_else(|| no_pane_error(&address.team, &address.name, verb))?,
        owner,
        visibility,
        neighbors: pane_neighbors(state, &address.team),
        layout: team_layout(state, &address.team),
        person_pane: person_pane(state, &record.request),
    })
}

/// Handles the result of moving a pane.
pub(crate) fn handle_pane_moved(
    context: &mut Context,
    client: Option<ConnId>,
    spawn: &SpawnId,
    visibility: PaneVisibility,
    result: Result<(), ErrorReport>,
) {
    let agent = result.and_then(|()| context.state.agents.get_mut(spawn).ok_or_else(member_ended_error));
    match agent {
        Err(error) => client.into_iter().for_each(|client| send_reply(context, client, Err(error.clone()))),
        Ok(agent) => {
            agent.record.is_hidden = visibility == PaneVisibility::Hidden;
            agent.record.respawn.is_hidden = agent.record.is_hidden;
            let (name, team) = (agent.record.request.name.clone(), agent.record.request.team.clone());
            let pane = agent.record.pane.as_ref().map(|pane| pane.id.clone()).unwrap_or_default();
            let reply = VisibilityReply { name, pane, is_hidden: agent.record.is_hidden };
            context.state.has_roster_changed = true;
            context.effects.push(write_hidden_panes(
                context.state,
                &team,
                client.map(|client| (client, reply)),
            ));
        }
    }
}

fn member_ended_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, "cannot find its pane any more: the member has ended meanwhile")
        .with_help("see how: teamctl status")
}

/// Replies once config.json has the hidden panes.
pub(crate) fn handle_hidden_panes_written(
    context: &mut Context,
    client: ConnId,
    reply: VisibilityReply,
    result: Result<(), ErrorReport>,
) {
    let visibility = if reply.is_hidden { "hidden" } else { "shown" };
    let result = result.map_err(|error| {
        let message =
            format!("{}'s pane is {visibility}, but config.json lacks it: {}", reply.name, error.message);
        ErrorReport { message, ..error }
    });
    send_reply(context, client, result.map(|()| Reply::Visibility(reply)));
}

/// The job that checks whether a person has moved hidden panes back into a visible window. Each
/// rescan runs this job. `None` if no pane is hidden.
pub(crate) fn check_hidden_panes(state: &State) -> Option<Effect> {
    let living = state
        .agents
        .values()
        .filter(|agent| agent.record.is_hidden && !agent.record.lifecycle.has_failed_cleanup());
    let panes = living.filter_map(|agent| {
        let pane = agent.record.pane.as_ref()?.id()?;
        Some((agent.record.spawn_id.clone(), pane, agent.record.spawn_id.pane_tag()))
    });
    let panes: Vec<(SpawnId, PaneId, PaneTag)> = panes.collect();
    (!panes.is_empty()).then_some(Effect::Pane(PaneJob::CheckHiddenPanes { panes }))
}

/// Records panes that a person has moved back.
pub(crate) fn handle_panes_visible(context: &mut Context, spawns: &[SpawnId]) {
    let mut teams = BTreeSet::new();
    for spawn in spawns {
        let Some(agent) = context.state.agents.get_mut(spawn) else { continue };
        agent.record.respawn.is_hidden = false;
        if std::mem::take(&mut agent.record.is_hidden) {
            context.state.has_roster_changed = true;
            teams.insert(agent.record.request.team.clone());
        }
    }
    context.effects.extend(teams.iter().map(|team| write_hidden_panes(context.state, team, None)));
}
