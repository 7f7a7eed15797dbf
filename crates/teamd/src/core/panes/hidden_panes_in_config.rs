//! Writes to config.json which panes of a team are hidden.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::roster::agent_record::AgentPane;
use crate::core::state::core_state::State;
use protocol::control_socket::VisibilityReply;
use protocol::team_and_member_names::TeamName;

/// The effect that stores in config.json the list of the team's hidden panes. After that, the
/// client in `reply_to` gets its reply.
pub(crate) fn write_hidden_panes(
    state: &State,
    team: &TeamName,
    reply_to: Option<(ConnId, VisibilityReply)>,
) -> Effect {
    Effect::File(FileJob::WriteHiddenPanes { team: team.clone(), panes: list_hidden(state, team), reply_to })
}

/// The effects that write to config.json which panes of each team are hidden. Each rescan repeats
/// these writes, because an earlier write may have failed, or the last daemon may have died before
/// its write.
pub(crate) fn write_all_hidden_panes(state: &State) -> Vec<Effect> {
    state.teams.keys().map(|team| write_hidden_panes(state, team, None)).collect()
}

/// The effect that restores the hidden panes in config.json. `None` without hidden panes.
pub(crate) fn restore_hidden_panes(state: &State, team: &TeamName) -> Option<Effect> {
    (!list_hidden(state, team).is_empty()).then(|| write_hidden_panes(state, team, None))
}

fn list_hidden(state: &State, team: &TeamName) -> Vec<String> {
    let members = state.members(team).into_iter();
    let hidden = members.filter(|agent| agent.record.is_hidden && !agent.record.lifecycle.is_exited());
    hidden.filter_map(|agent| agent.record.pane.as_ref()).map(|pane: &AgentPane| pane.id.clone()).collect()
}
