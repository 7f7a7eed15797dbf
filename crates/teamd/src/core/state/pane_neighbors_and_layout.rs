//! Where a member's pane is opened or shown: beside which panes, and in which layout.

use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use protocol::control_socket::{Backend, Layout, PersonPane, SpawnRequest};
use protocol::team_and_member_names::TeamName;

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
