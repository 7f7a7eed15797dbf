//! Sets the layout of a team's windows.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::Effect;
use crate::core::jobs::pane_jobs::PaneJob;
use crate::core::reply_to_client::send_reply;
use crate::core::state::agent::Agent;
use crate::core::state::call_errors::iterm2_error;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Backend, Layout, Reply, SetLayoutReply, SetLayoutRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;

/// Sets the layout of a team's windows. Once tmux has applied the layout, the daemon keeps it and
/// uses it for new windows of the team.
pub(crate) fn set_layout(context: &mut Context, client: ConnId, request: &SetLayoutRequest) {
    if let Err(error) = supervised_team(context.state, &request.team) {
        return send_reply(context, client, Err(error));
    }
    let members = context.state.members(&request.team);
    let is_in_iterm2 = |agent: &&Agent| agent.record.request.backend == Backend::Iterm2;
    if !members.is_empty() && members.iter().all(is_in_iterm2) {
        let error = iterm2_error(&request.team, request.team.as_str(), "lay out");
        return send_reply(context, client, Err(error));
    }
    let owners = members.into_iter().map(|agent| agent.record.spawn_id.pane_tag()).collect();
    let (team, layout) = (request.team.clone(), request.layout);
    context.effects.push(Effect::Pane(PaneJob::ApplyLayout { client, team, owners, layout }));
}

/// Handles the result of applying a layout.
pub(crate) fn handle_layout_applied(
    context: &mut Context,
    client: ConnId,
    team_name: TeamName,
    layout: Layout,
    result: Result<usize, ErrorReport>,
) {
    if let (Ok(_), Some(team)) = (&result, context.state.teams.get_mut(&team_name)) {
        team.layout = layout;
        context.state.has_roster_changed = true;
    }
    let reply = result.map(|windows| Reply::SetLayout(SetLayoutReply { team_name, layout, windows }));
    send_reply(context, client, reply);
}
