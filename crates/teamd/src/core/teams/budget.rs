//! Budgets of teams. A budget limits the turns, the time since the team was created, and the tokens
//! and money that programs report. When a budget is exhausted, the members are suspended. No member
//! is spawned until a new policy allows more.

use crate::core::context::Context;
use crate::core::effect::Effect;
use crate::core::id::SpawnId;
use crate::core::members::shutdown;
use crate::core::state::budget_status::{exhausted_reason, remaining_ms};
use crate::core::state::daemon::State;
use crate::core::state::team::TeamState;
use protocol::event::EventKind;
use protocol::name::TeamName;
use protocol::usage::UsageReport;

/// Counts the turns that were started by this event. A turn that runs during a restart of the
/// daemon can count twice.
pub(crate) fn count_started_turns(context: &mut Context) {
    for team in std::mem::take(&mut context.started_turns) {
        let Some(known) = context.state.teams.get_mut(&team) else { continue };
        known.usage.turns += 1;
        context.state.has_roster_changed |= known.policy.max_turns.is_some();
        check(context, &team);
    }
}

/// Adds the usage that a program reports for a session, or for this spawn.
pub(crate) fn add_usage(context: &mut Context, id: &SpawnId, report: UsageReport) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let session = report.session_id.or_else(|| Some(id.as_str().to_owned()));
    let new = agent.record.respawn.usage.add_report(UsageReport { session_id: session, ..report });
    if new.is_zero() {
        return;
    }
    context.state.has_roster_changed = true;
    let team = agent.record.request.team.clone();
    if let Some(known) = context.state.teams.get_mut(&team) {
        known.usage.usage = known.usage.usage.saturating_add(new);
        check(context, &team);
    }
}

/// Checks the team's budget under the present policy, and sets when the time limit is reached. When
/// the budget becomes exhausted, all members of the team get a shutdown request.
pub(crate) fn check(context: &mut Context, team: &TeamName) {
    let Some(known) = context.state.teams.get_mut(team) else { return };
    let left = remaining_ms(known, context.now);
    let why = exhausted_reason(known, left);
    known.time_limit_at = left.filter(|_| why.is_none()).map(|left| context.now.mono.saturating_add(left));
    let is_news = why.is_some() && known.usage.exhausted_reason.is_none();
    context.state.has_roster_changed |= known.usage.exhausted_reason != why;
    known.usage.exhausted_reason.clone_from(&why);
    if let Some(why) = why.filter(|_| is_news) {
        context.effects.push(Effect::log_team(team, EventKind::BudgetExhausted { reason: why.clone() }));
        context.state.notices.add_budget_exhausted(team);
        shutdown::request_team_shutdown(context, team, &why);
    }
}

/// Checks the time limits of all teams at a rescan. A time limit follows the wall clock. The wall
/// clock can advance while the monotonic clock, on which deadlines are set, stands still.
pub(crate) fn check_time_limits(context: &mut Context) {
    let timed = context.state.teams.iter().filter(|(_, known)| known.policy.max_time_ms.is_some());
    let timed: Vec<TeamName> = timed.map(|(team, _)| team.clone()).collect();
    timed.iter().for_each(|team| check(context, team));
}

/// Checks the teams whose time limit is reached.
pub(crate) fn check_due(context: &mut Context) {
    let over = |known: &TeamState| known.time_limit_at.is_some_and(|at| at <= context.now.mono);
    let teams = context.state.teams.iter().filter(|(_, known)| over(known)).map(|(team, _)| team.clone());
    teams.collect::<Vec<_>>().iter().for_each(|team| check(context, team));
}

pub(crate) fn next_time_limit(state: &State) -> impl Iterator<Item = u64> {
    state.teams.values().filter_map(|known| known.time_limit_at)
}
