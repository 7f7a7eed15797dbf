//! Lookups by the names that a caller gives, and their errors.

use crate::core::id::SpawnId;
use crate::core::roster::record::AgentPane;
use crate::core::state::agent::Agent;
use crate::core::state::daemon::State;
use crate::core::state::team::TeamState;
use protocol::control::Backend;
use protocol::control::{Layout, PersonPane, SpawnRequest};
use protocol::did_you_mean::did_you_mean;
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::{AgentName, TeamName, strip_team};
use std::collections::BTreeSet;

/// The error for a call while the daemon shuts down. `next_command` is the command to run once the
/// daemon has ended.
pub(crate) fn going_down_error(action: &str, next_command: &str) -> ErrorReport {
    let message = format!("cannot {action}: teamd is going down");
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!("once it has ended: {next_command}"))
}

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
    AgentName::parse(bare_name)
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

/// The tags of the panes that share windows, in joining order. A new pane is opened beside them.
pub(crate) fn pane_neighbors(state: &State, team: &TeamName) -> Vec<tmux::PaneTag> {
    let shares_windows = |agent: &&Agent| agent.record.request.backend == Backend::Tmux;
    state
        .members(team)
        .into_iter()
        .filter(shares_windows)
        .map(|agent| agent.record.spawn_id.pane_tag())
        .collect()
}

/// The pane beside which the member's pane is opened or shown. `None` for a member with a window of
/// its own.
pub(crate) fn person_pane(state: &State, request: &SpawnRequest) -> Option<PersonPane> {
    let team = state.teams.get(&request.team).filter(|_| request.backend == Backend::Tmux);
    team?.person_pane.clone()
}

/// The layout of the team's windows.
pub(crate) fn team_layout(state: &State, team: &TeamName) -> Layout {
    state.teams.get(team).map(|team| team.layout).unwrap_or_default()
}

/// The team of that name. An error if the daemon does not supervise it.
pub(crate) fn supervised_team<'a>(state: &'a State, team: &TeamName) -> Result<&'a TeamState, ErrorReport> {
    state.teams.get(team).ok_or_else(|| no_such_team_error(state, team))
}

/// The error for an unknown team, or a team of another program.
pub(crate) fn no_such_team_error(state: &State, team: &TeamName) -> ErrorReport {
    if team.is_claude_session() {
        let message = format!("cannot do that in {team}: it belongs to a session of Claude Code");
        return ErrorReport::new(ErrorKind::NotPermitted, message)
            .with_help("it can be looked at with status and inbox, and its members can be sent messages");
    }
    let suggestion = did_you_mean(team.as_str(), state.teams.keys().map(TeamName::as_str));
    ErrorReport::new(ErrorKind::NotFound, format!("cannot find the team {team}"))
        .with_help(suggestion.unwrap_or_else(|| format!("make it with: teamctl create {team}")))
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

pub(crate) fn no_pane_error(team: &TeamName, name: &str, verb: &str) -> ErrorReport {
    ErrorReport::new(ErrorKind::NotFound, format!("cannot {verb} {name}: it has no pane"))
        .with_help(format!("its output: teamctl logs {name} -t {team}"))
}

pub(crate) fn tmux_gone_error() -> ErrorReport {
    ErrorReport::new(ErrorKind::MissingPath, "cannot reach tmux: its server is gone")
        .with_help("see: teamctl doctor")
}

/// The error for deleting a team that has members.
pub(crate) fn has_members_error(team: &TeamName, names: &[String]) -> ErrorReport {
    let message = format!("Cannot cleanup team with {} active member(s): {}", names.len(), names.join(", "));
    ErrorReport::new(ErrorKind::Refused, message)
        .with_help(format!("end them with: teamctl shutdown --all -t {team}"))
}

/// The error for deleting a team with members that teamd does not run.
pub(crate) fn has_unsupervised_members_error(team: &TeamName, names: &[String]) -> ErrorReport {
    let names = names.join(", ");
    let message = format!("cannot delete {team}: it has members that teamd does not run: {names}");
    ErrorReport::new(ErrorKind::Refused, message).with_help(format!(
        "end them in the program that started them; to delete the team and let them run on: teamctl delete {team} --force"
    ))
}
