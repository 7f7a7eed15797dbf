//! Panes out of sight and back, and the layout of a team's windows. tmux does it, our roster knows it, config.json
//! tells others; only then the caller is answered. A hidden pane's agent goes on as before.

use super::request::answer;
use super::shutdown::find;
use super::spawn::{beside, layout_of, no_such_team};
use super::status::{no_pane, pane_of};
use crate::effect::Effect;
use crate::event::ConnId;
use crate::files::FileJob;
use crate::panes::{PaneJob, Sight};
use crate::roster::{Pane, SpawnId};
use crate::state::{Phase, State};
use protocol::control::{Layout, MemberAddress, Reply, SetLayoutReply, SetLayoutRequest, VisibilityReply};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;
use std::collections::BTreeSet;
use tmux::{PaneId, PaneTag};

/// `hide` and `show`.
pub(super) fn put(
    state: &mut State,
    client: ConnId,
    who: &MemberAddress,
    sight: Sight,
    out: &mut Vec<Effect>,
) {
    match found(state, who, sight) {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok((spawn, pane, owner)) => out.push(Effect::Pane(PaneJob::Move {
            client,
            spawn,
            team: who.team.clone(),
            pane,
            owner,
            sight,
            beside: beside(state, &who.team),
            layout: layout_of(state, &who.team),
        })),
    }
}

fn found(
    state: &State,
    who: &MemberAddress,
    sight: Sight,
) -> Result<(SpawnId, PaneId, PaneTag), ErrorReport> {
    let what = if sight == Sight::Hidden { "hide" } else { "show" };
    let (pane, owner) = pane_of(state, &who.team, &who.name, what)?;
    let spawn = find(state, &who.team, &who.name)?.record.spawn.clone();
    Ok((spawn, pane.id().ok_or_else(|| no_pane(&who.team, &who.name, what))?, owner))
}

/// tmux has moved it, or not.
pub(super) fn moved(
    state: &mut State,
    client: ConnId,
    spawn: &SpawnId,
    sight: Sight,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let moved = result.and_then(|()| state.agents.get_mut(spawn).ok_or_else(ended));
    match moved {
        Err(fault) => answer(state, client, Err(fault), out),
        Ok(agent) => {
            agent.record.hidden = sight == Sight::Hidden;
            let (name, team) = (agent.record.name.clone(), agent.record.team.clone());
            let pane = agent.record.pane.as_ref().map(|pane| pane.pane.clone()).unwrap_or_default();
            let reply = VisibilityReply { name, pane, hidden: agent.record.hidden };
            state.dirty = true;
            out.push(note(state, &team, Some((client, reply))));
        }
    }
}

fn ended() -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, "cannot find its pane any more: the member has ended meanwhile")
        .with_help("see how: teamctl status")
}

/// config.json says so too, or could not be written.
pub(super) fn noted(
    state: &mut State,
    client: ConnId,
    reply: VisibilityReply,
    result: Result<(), ErrorReport>,
    out: &mut Vec<Effect>,
) {
    let done = if reply.hidden { "hidden" } else { "shown" };
    let result = result.map_err(|fault| {
        let message = format!("{}'s pane is {done}, but config.json lacks it: {}", reply.name, fault.message);
        ErrorReport { message, ..fault }
    });
    answer(state, client, result.map(|()| Reply::Visibility(reply)), out);
}

/// config.json gets the panes of this team that are hidden now.
pub(super) fn note(state: &State, team: &TeamName, tell: Option<(ConnId, VisibilityReply)>) -> Effect {
    Effect::File(FileJob::Hidden { team: team.clone(), panes: hidden(state, team), tell })
}

/// At a rescan: a daemon may have been killed between tmux and the file, or the disk was full.
pub(super) fn note_all(state: &State) -> Vec<Effect> {
    state.teams.keys().map(|team| note(state, team, None)).collect()
}

/// A foreign writer may have dropped it.
pub(super) fn note_where_hidden(state: &State, team: &TeamName) -> Option<Effect> {
    (!hidden(state, team).is_empty()).then(|| note(state, team, None))
}

fn hidden(state: &State, team: &TeamName) -> Vec<String> {
    let members = state.members(team).into_iter();
    let hidden = members.filter(|agent| agent.record.hidden && !matches!(agent.phase, Phase::Gone(_)));
    hidden.filter_map(|agent| agent.record.pane.as_ref()).map(|pane: &Pane| pane.pane.clone()).collect()
}

/// At a rescan: a person may have taken one out by hand.
pub(super) fn look(state: &State) -> Option<Effect> {
    let living = state.agents.values().filter(|agent| agent.record.hidden && !agent.phase.is_past());
    let panes = living.filter_map(|agent| {
        let pane = agent.record.pane.as_ref()?.id()?;
        Some((agent.record.spawn.clone(), pane, agent.record.spawn.owner()))
    });
    let panes: Vec<(SpawnId, PaneId, PaneTag)> = panes.collect();
    (!panes.is_empty()).then_some(Effect::Pane(PaneJob::Hidden { panes }))
}

/// These are to be seen again, by somebody else's hand.
pub(super) fn in_sight(state: &mut State, spawns: &[SpawnId], out: &mut Vec<Effect>) {
    let mut teams = BTreeSet::new();
    for spawn in spawns {
        let Some(agent) = state.agents.get_mut(spawn) else { continue };
        if std::mem::take(&mut agent.record.hidden) {
            state.dirty = true;
            teams.insert(agent.record.team.clone());
        }
    }
    out.extend(teams.iter().map(|team| note(state, team, None)));
}

/// `layout`: kept, once tmux has taken it, for windows that come later.
pub(super) fn layout(state: &mut State, client: ConnId, order: &SetLayoutRequest, out: &mut Vec<Effect>) {
    if !state.teams.contains_key(&order.team) {
        let fault = no_such_team(state, &order.team);
        return answer(state, client, Err(fault), out);
    }
    let owners = state.members(&order.team).into_iter().map(|agent| agent.record.spawn.owner()).collect();
    let (team, layout) = (order.team.clone(), order.layout);
    out.push(Effect::Pane(PaneJob::LayOut { client, team, owners, layout }));
}

/// tmux has laid them out, or not.
pub(super) fn laid_out(
    state: &mut State,
    client: ConnId,
    team_name: TeamName,
    layout: Layout,
    result: Result<usize, ErrorReport>,
    out: &mut Vec<Effect>,
) {
    if let (Ok(_), Some(team)) = (&result, state.teams.get_mut(&team_name)) {
        team.layout = layout;
        state.dirty = true;
    }
    let reply = result.map(|windows| Reply::SetLayout(SetLayoutReply { team_name, layout, windows }));
    answer(state, client, reply, out);
}
