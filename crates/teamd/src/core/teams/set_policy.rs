//! Replaces the policy of a team. The new policy decides open requests, too.

use crate::core::apply_policy_to_member_requests;
use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::{Effect, Wake};
use crate::core::hosts::place_member::check_budget_reaches_members;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::reply_to_client::send_reply;
use crate::core::state::agent::Agent;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use protocol::control_socket::{Reply, SetPolicyRequest};
use protocol::error_kind_and_report::ErrorReport;
use protocol::team_and_member_names::TeamName;

pub(crate) fn set_policy(context: &mut Context, client: ConnId, request: SetPolicyRequest) {
    let is_same = supervised_team(context.state, &request.team)
        .map(|team_state| team_state.policy == request.policy)
        .and_then(|is_same| {
            check_budget_reaches_members(context.state, &request.team, &request.policy).map(|()| is_same)
        });
    match is_same {
        Err(error) => send_reply(context, client, Err(error)),
        Ok(true) => send_reply(context, client, Ok(Reply::Ack)),
        Ok(false) => {
            if request.policy.has_limits() {
                context.state.host_links.budgets_being_saved.push((client, request.team.clone()));
            }
            context.effects.push(Effect::File(FileJob::SavePolicy { client, request }));
        }
    }
}

/// Applies a new policy once it is saved. After an error the old one stays.
pub(crate) fn handle_policy_saved(
    context: &mut Context,
    client: ConnId,
    request: SetPolicyRequest,
    result: Result<(), ErrorReport>,
) {
    forget_saved_budget(&mut context.state.host_links.budgets_being_saved, client, &request);
    if result.is_ok() {
        budget::recount_usage(context.state, &request.team, &request.policy);
        if let Some(team_state) = context.state.teams.get_mut(&request.team) {
            team_state.policy = request.policy;
        }
        wake_paused_members(context, |team| *team == request.team);
        budget::check(context, &request.team);
        apply_policy_to_member_requests::reapply_policy(context, &request.team);
    }
    send_reply(context, client, result.map(|()| Reply::Ack));
}

fn forget_saved_budget(saved: &mut Vec<(ConnId, TeamName)>, client: ConnId, request: &SetPolicyRequest) {
    if request.policy.has_limits()
        && let Some(at) = saved.iter().position(|(other, team)| *other == client && *team == request.team)
    {
        saved.remove(at);
    }
}

/// Wakes the members of the selected teams whose turns wait, so that they find out whether to go on.
pub(crate) fn wake_paused_members(context: &mut Context, is_selected: impl Fn(&TeamName) -> bool) {
    let is_paused = |agent: &&Agent| {
        is_selected(&agent.record.request.team)
            && agent.turn.as_ref().is_some_and(|turn| turn.pause.is_some())
    };
    for agent in context.state.agents.values().filter(is_paused) {
        context.effects.wake_agent(&agent.record.spawn_id, Wake::Needed);
    }
}
