//! Sets the pane beside which a team's panes are opened.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::reply_to_client::send_reply;
use crate::core::state::call_errors::no_such_team_error;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::control_socket::{Reply, SetPersonPaneRequest};

/// Keeps the pane for the team's next panes. Panes that are open stay where they are.
pub(crate) fn set_person_pane(context: &mut Context, client: ConnId, request: SetPersonPaneRequest) {
    let Some(team) = context.state.teams.get_mut(&request.team) else {
        let error = no_such_team_error(context.state, &request.team);
        return send_reply(context, client, Err(error));
    };
    team.person_pane = Some(request.person_pane);
    context.state.has_roster_changed = true;
    send_reply(context, client, Ok(Reply::Ack));
}
