//! At the home: tells the annexes of a team when the team's budget is exhausted, and how much of
//! the budget one member may use. The home counts what all members use.

use crate::core::hosts::compare_changed_files::push_job;
use crate::core::jobs::host_jobs::{LinkId, MirrorJob};
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::member_limit;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::annex_link::HomeBudget;
use protocol::team_and_member_names::TeamName;

/// Tells an annex the budgets of these teams.
pub(crate) fn send_budgets(context: &mut Context, link: &LinkId, teams: &[TeamName]) {
    if matches!(link, LinkId::ToHome(_)) {
        return;
    }
    for team in teams {
        let Some(budget) = budget_to_send(context.state, team) else { continue };
        push_job(context, link.clone(), MirrorJob::SendBudget { team: team.clone(), budget });
    }
}

/// Tells all annexes the budget of a team.
pub(crate) fn send_budget(context: &mut Context, team: &TeamName) {
    let links: Vec<LinkId> = context.state.host_links.links_of(team).cloned().collect();
    links.iter().for_each(|link| send_budgets(context, link, std::slice::from_ref(team)));
}

fn budget_to_send(state: &State, team: &TeamName) -> Option<HomeBudget> {
    let team_state = state.teams.get(team)?;
    let exhausted_reason = team_state.usage.exhausted_reason.clone();
    Some(HomeBudget { exhausted_reason, member_limit: member_limit(&team_state.policy) })
}
