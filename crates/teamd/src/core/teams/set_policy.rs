//! Replaces the policy of a team. The new policy decides open requests, too.

use crate::core::apply_policy_to_member_requests;
use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::effect::{Effect, Wake};
use crate::core::hosts::send_budgets::send_budget;
use crate::core::jobs::file_jobs::FileJob;
use crate::core::reply_to_client::send_reply;
use crate::core::state::agent::Agent;
use crate::core::state::core_state::State;
use crate::core::state::find_team_or_member::supervised_team;
use crate::core::state_time_and_effects_of_one_event::Context;
use crate::core::teams::budget;
use protocol::control_socket::{Reply, SetPolicyRequest};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::Policy;
use protocol::team_and_member_names::TeamName;

pub(crate) fn set_policy(context: &mut Context, client: ConnId, request: SetPolicyRequest) {
    let is_same = check_policy_fits(context.state, &request);
    match is_same {
        Err(error) => send_reply(context, client, Err(error)),
        Ok(true) => send_reply(context, client, Ok(Reply::Ack)),
        Ok(false) => {
            context.effects.push(Effect::File(FileJob::SavePolicy { client, request }));
        }
    }
}

/// Whether the team has this policy already.
///
/// # Errors
///
/// If the team is unknown. Also if the policy has a budget and this host has only a mirror of the
/// team: the home sets budgets, because it counts the usage.
fn check_policy_fits(state: &State, request: &SetPolicyRequest) -> Result<bool, ErrorReport> {
    let team_state = supervised_team(state, &request.team)?;
    if request.policy.has_limits() && state.host_links.home_of(&request.team).is_some() {
        let message =
            format!("cannot set a budget for {}: this host has only a mirror of the team", request.team);
        return Err(ErrorReport::new(ErrorKind::Refused, message).with_help("set it at the team's home"));
    }
    Ok(team_state.policy == request.policy)
}

/// Applies a new policy once it is saved. After an error the old one stays.
pub(crate) fn handle_policy_saved(
    context: &mut Context,
    client: ConnId,
    request: SetPolicyRequest,
    result: Result<(), ErrorReport>,
) {
    if result.is_ok() {
        apply_policy(context, &request.team, request.policy);
    }
    send_reply(context, client, result.map(|()| Reply::Ack));
}

/// Applies a policy that is in its file.
pub(crate) fn apply_policy(context: &mut Context, team: &TeamName, policy: Policy) {
    budget::recount_usage(context.state, team, &policy);
    if let Some(team_state) = context.state.teams.get_mut(team) {
        team_state.policy = policy;
    }
    wake_paused_members(context, |other| other == team);
    budget::check(context, team);
    send_budget(context, team);
    apply_policy_to_member_requests::reapply_policy(context, team);
}

/// Wakes the members of the selected teams whose turns wait, so that they find out whether to go
/// on.
pub(crate) fn wake_paused_members(context: &mut Context, is_selected: impl Fn(&TeamName) -> bool) {
    let is_paused = |agent: &&Agent| {
        is_selected(&agent.record.request.team)
            && agent.turn.as_ref().is_some_and(|turn| turn.pause.is_some())
    };
    for agent in context.state.agents.values().filter(is_paused) {
        context.effects.wake_agent(&agent.record.spawn_id, Wake::Needed);
    }
}
