//! Finds the teams and members that a call names, or returns the error for the caller.

use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::roster::agent_record::AgentPane;
use crate::core::state::agent::Agent;
use crate::core::state::call_errors::{no_pane_error, no_such_team_error};
use crate::core::state::core_state::State;
use crate::core::state::taken_and_free_member_names::is_between_spawns;
use crate::core::state::team::TeamState;
use protocol::control_socket::MemberSelection;
use protocol::did_you_mean::did_you_mean;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::team_and_member_names::{MemberName, TeamName, strip_team};
use std::collections::BTreeSet;

pub(crate) fn living_ids(state: &State, team: &TeamName) -> BTreeSet<SpawnId> {
    let members = state.members(team);
    members
        .iter()
        .filter(|agent| !agent.record.lifecycle.has_failed_cleanup())
        .map(|agent| agent.record.spawn_id.clone())
        .collect()
}

/// The member of that name. An error if there is no such team or member, or if the member's cleanup
/// has failed.
pub(crate) fn find_member<'a>(
    state: &'a State,
    team: &TeamName,
    name: &str,
) -> Result<&'a Agent, ErrorReport> {
    supervised_team(state, team)?;
    let bare_name = strip_team(name, team);
    MemberName::parse(bare_name)
        .ok()
        .and_then(|name| state.member(team, &name))
        .filter(|agent| !agent.record.lifecycle.has_failed_cleanup())
        .ok_or_else(|| {
            let members = state.members(team);
            let message = format!("cannot find {bare_name} in {team}: teamd runs no member of that name");
            let suggestion = did_you_mean(bare_name, members.iter().map(|agent| agent.record.request.name.as_str()));
            let members_help = || {
                format!("see its members with: teamctl status -t {team}; an unsupervised member is ended by the program that started it")
            };
            ErrorReport::new(ErrorKind::NotFound, message).with_help(suggestion.unwrap_or_else(members_help))
        })
}

/// The team of that name. An error if the daemon does not supervise it.
pub(crate) fn supervised_team<'a>(state: &'a State, team: &TeamName) -> Result<&'a TeamState, ErrorReport> {
    state.teams.get(team).ok_or_else(|| no_such_team_error(state, team))
}

/// The pane of a member, and its tag. `verb` completes the error "cannot …".
pub(crate) fn pane_and_tag(
    state: &State,
    team: &TeamName,
    name: &str,
    verb: &str,
) -> Result<(AgentPane, tmux::PaneTag), ErrorReport> {
    let agent = find_member(state, team, name)?;
    let pane = agent.record.pane.clone().ok_or_else(|| no_pane_error(team, name, verb))?;
    Ok((pane, agent.record.spawn_id.pane_tag()))
}

/// The agents of the given members, or of the whole team if no names are given.
pub(crate) fn resolve_targets(
    state: &State,
    targets: &MemberSelection,
) -> Result<BTreeSet<SpawnId>, ErrorReport> {
    supervised_team(state, &targets.team)?;
    if targets.names.is_empty() {
        return Ok(living_ids(state, &targets.team));
    }
    targets
        .names
        .iter()
        .filter(|name| !is_between_spawns(state, &targets.team, name))
        .map(|name| find_member(state, &targets.team, name).map(|agent| agent.record.spawn_id.clone()))
        .collect()
}
