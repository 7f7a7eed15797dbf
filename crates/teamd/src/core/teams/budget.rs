//! Budgets of teams. A budget limits the turns, the time since the team was created, and the tokens
//! and money that programs report. When a budget is exhausted, the members are suspended. No member
//! is spawned until a new policy allows more. A member that has used its share of the budget is
//! suspended alone.

use crate::core::agent_process::OnExit;
use crate::core::connection_spawn_and_watch_ids::SpawnId;
use crate::core::effect::Effect;
use crate::core::event_time::Now;
use crate::core::hosts::send_budgets::send_budget;
use crate::core::members::shutdown_requests;
use crate::core::notifications_to_people::notice::NoticeKind;
use crate::core::roster::agent_record::AgentRecord;
use crate::core::state::core_state::State;
use crate::core::state::exhausted_budget::{
    exhausted_reason, member_limit, member_limit_here, remaining_ms, used_share_reason,
};
use crate::core::state::find_team_or_member::living_ids;
use crate::core::state::team::TeamState;
use crate::core::state_time_and_effects_of_one_event::Context;
use protocol::event_log_line::EventKind;
use protocol::policy::Policy;
use protocol::team_and_member_names::TeamName;
use protocol::team_home::HomeUsage;
use protocol::token_and_cost_usage::{Usage, UsageReport};
use std::collections::BTreeSet;

/// Tokens, and millionths of a dollar, that a member may have used before its first spawn.
const USAGE_ALLOWANCE: u64 = 1_000_000_000;

/// Tokens, and millionths of a dollar, that a member may use in a second.
const USAGE_PER_SECOND: u64 = 1_000_000;

/// Counts the turns that this event has started. A turn that runs during a restart of the daemon
/// can count twice.
pub(crate) fn count_started_turns(context: &mut Context) {
    for team in std::mem::take(&mut context.started_turns) {
        let Some(team_state) = context.state.teams.get_mut(&team) else { continue };
        team_state.usage.turns += 1;
        context.state.has_roster_changed |= team_state.policy.max_turns.is_some();
        check(context, &team);
    }
}

/// Adds the usage that a program reports for a session. A report without a session id is handled as
/// if the whole spawn were one session. Usage that is implausibly large is not counted, because one
/// wrong report would suspend the whole team. Usage beyond the member's share does not count for
/// the team.
pub(crate) fn add_usage(context: &mut Context, id: &SpawnId, report: UsageReport) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    let session_id = report.session_id.or_else(|| Some(id.as_str().to_owned()));
    let report = UsageReport { session_id, ..report };
    let limit = largest_plausible_usage(&agent.record, context.now);
    let team = agent.record.request.team.clone();
    let before = agent.record.respawn.usage.usage;
    match agent.record.respawn.usage.add_report(report, limit) {
        Ok(increase) if increase.is_zero() => return,
        Ok(used) => {
            let total = agent.record.respawn.usage.usage;
            let event = EventKind::MemberUsage { used, total };
            context.effects.push(Effect::log_member(&agent.record, event));
        }
        Err(total) => {
            let reason = format!("{total} is more than a program can use in its time");
            return refuse_usage(context, id, &reason);
        }
    }
    let after = agent.record.respawn.usage.usage;
    context.state.has_roster_changed = true;
    if let Some(team_state) = context.state.teams.get_mut(&team) {
        let increase = counted_increase(&team_state.policy, before, after);
        team_state.usage.usage = team_state.usage.usage.saturating_add(increase);
        check(context, &team);
    }
}

/// What counts for the team when a member's usage increases.
pub(crate) fn counted_increase(policy: &Policy, before: Usage, after: Usage) -> Usage {
    counted_usage(policy, after).saturating_sub(counted_usage(policy, before))
}

/// The part of a member's usage that counts for the team.
fn counted_usage(policy: &Policy, usage: Usage) -> Usage {
    member_limit(policy).map_or(usage, |limit| usage.min_each(limit))
}

/// Recalculates the team's usage before the policy changes to `next`. The team's usage counts each
/// member's usage only up to the member's share of the budget. So a larger share can increase the
/// team's usage, and a smaller share can reduce it.
pub(crate) fn recount_usage(state: &mut State, team: &TeamName, next: &Policy) {
    let Some(team_state) = state.teams.get_mut(team) else { return };
    // The record of an exited agent that is respawned is among the pending respawns too.
    let agents = state.agents.values().filter(|agent| !agent.record.lifecycle.is_exited());
    let agents = agents.map(|agent| (&agent.record.request, &agent.record.respawn));
    let suspended = state.pending_respawns.iter().map(|pending| (&pending.request, &pending.respawn));
    let here = agents.chain(suspended).filter(|(request, _)| request.team == *team);
    let here = here.map(|(_, respawn)| respawn.usage.usage);
    let annexes = team_state.usage.annexes.values();
    let elsewhere = annexes.flat_map(|annex| annex.members.values().copied());
    for usage in here.chain(elsewhere).collect::<Vec<_>>() {
        let [before, after] = [&team_state.policy, next].map(|policy| counted_usage(policy, usage));
        team_state.usage.usage = team_state.usage.usage.saturating_sub(before).saturating_add(after);
    }
    state.has_roster_changed = true;
}

/// What the team has used, for the host that becomes its home.
pub(crate) fn usage_for_new_home(state: &State, team: &TeamName) -> HomeUsage {
    let usage = state.teams.get(team).map(|team_state| &team_state.usage);
    usage.map_or_else(HomeUsage::default, |used| HomeUsage {
        turns: used.turns,
        usage: used.usage,
        started_at: used.started_at,
    })
}

/// Raises the usage of the team to the figures that the old home has counted. Those figures include
/// what the members on this host used before the move. This host has counted that too, so the two
/// figures are not added, and the larger one is kept.
///
/// Does nothing if the usage was added before. `epoch` is the epoch of the home since then. Called
/// again at each start of the daemon, because a crash may have come before the usage was saved.
pub(crate) fn add_usage_of_old_home(state: &mut State, team: &TeamName, epoch: u64, old: HomeUsage) {
    let Some(team_state) = state.teams.get_mut(team) else { return };
    let used = &mut team_state.usage;
    if used.old_home_added >= epoch {
        return;
    }
    used.old_home_added = epoch;
    used.turns = used.turns.max(old.turns);
    used.usage.tokens = used.usage.tokens.max(old.usage.tokens);
    used.usage.microdollars = used.usage.microdollars.max(old.usage.microdollars);
    if old.started_at != 0 {
        used.started_at = used.started_at.min(old.started_at);
    }
    state.has_roster_changed = true;
}

/// The largest plausible usage of a member: an amount for each second since the member's first
/// spawn, and a fixed amount. The fixed amount is needed because the member's session may be older
/// than that spawn. Both amounts are far above what programs use.
fn largest_plausible_usage(record: &AgentRecord, now: Now) -> Usage {
    let first_spawned_at = match record.respawn.first_spawned_at {
        0 => record.spawned_at,
        at => at,
    };
    let seconds = now.wall.saturating_sub(first_spawned_at) / 1_000;
    let largest = USAGE_ALLOWANCE.saturating_add(seconds.saturating_mul(USAGE_PER_SECOND));
    Usage { tokens: largest, microdollars: largest }
}

/// Reports usage that is not counted, once per spawn.
pub(crate) fn refuse_usage(context: &mut Context, id: &SpawnId, reason: &str) {
    let Some(agent) = context.state.agents.get_mut(id) else { return };
    if std::mem::replace(&mut agent.has_reported_wrong_usage, true) {
        return;
    }
    let message = format!("cannot count the usage that {} reports: {reason}", agent.record.request.name);
    context.effects.push(Effect::log_member(&agent.record, EventKind::Error { message }));
}

/// Checks the team's budget under the present policy, and sets the deadline of the time limit. When
/// the budget becomes exhausted, all members of the team get a shutdown request.
pub(crate) fn check(context: &mut Context, team: &TeamName) {
    let Some(team_state) = context.state.teams.get_mut(team) else { return };
    let left_ms = remaining_ms(team_state, context.now);
    let home_budget = context.state.host_links.home_budget(team);
    let reason = match home_budget {
        Some(budget) => budget.exhausted_reason.clone(),
        None => exhausted_reason(team_state, left_ms),
    };
    team_state.time_limit_at =
        left_ms.filter(|_| reason.is_none()).map(|left_ms| context.now.mono.saturating_add(left_ms));
    let is_newly_exhausted = reason.is_some() && team_state.usage.exhausted_reason.is_none();
    let has_changed = team_state.usage.exhausted_reason != reason;
    context.state.has_roster_changed |= has_changed;
    team_state.usage.exhausted_reason.clone_from(&reason);
    let is_home = home_budget.is_none();
    if has_changed {
        send_budget(context, team);
    }
    if let Some(reason) = reason.filter(|_| is_newly_exhausted) {
        context.effects.push(Effect::log_team(team, EventKind::BudgetExhausted { reason: reason.clone() }));
        if is_home {
            context.state.notices.add_budget_exhausted(team);
        }
        let all = living_ids(context.state, team);
        shutdown_requests::request_suspension(context, &all, &reason);
    }
    suspend_members_over_share(context, team);
}

/// Suspends the members that have used their share of the team's budget.
fn suspend_members_over_share(context: &mut Context, team: &TeamName) {
    let Some(limit) = member_limit_here(context.state, team) else { return };
    let over_share = living_ids(context.state, team).into_iter().filter_map(|id| {
        let record = &context.state.agents.get(&id)?.record;
        let is_running_on = record.lifecycle.process().on_exit == OnExit::ApplyRestartPolicy;
        let reason = used_share_reason(Some(limit), record.usage()).filter(|_| is_running_on)?;
        Some((id, record.request.name.clone(), reason))
    });
    for (id, name, reason) in over_share.collect::<Vec<_>>() {
        let Some(agent) = context.state.agents.get(&id) else { continue };
        let event = EventKind::BudgetExhausted { reason: reason.clone() };
        context.effects.push(Effect::log_member(&agent.record, event));
        context.state.notices.add(team, &name, None, NoticeKind::BudgetExhausted);
        shutdown_requests::request_suspension(context, &BTreeSet::from([id]), &reason);
    }
}

/// Checks the time limits of all teams at a rescan. Time limits follow the wall clock, but
/// deadlines are set on the monotonic clock, which stands still while the machine sleeps. After a
/// sleep, a deadline alone would come too late.
pub(crate) fn check_time_limits(context: &mut Context) {
    let timed = context.state.teams.iter().filter(|(_, team_state)| team_state.policy.max_time_ms.is_some());
    let timed: Vec<TeamName> = timed.map(|(team, _)| team.clone()).collect();
    timed.iter().for_each(|team| check(context, team));
}

/// Checks the teams whose time limit is reached.
pub(crate) fn check_due(context: &mut Context) {
    let is_due = |team_state: &TeamState| {
        team_state.time_limit_at.is_some_and(|time_limit| time_limit <= context.now.mono)
    };
    let teams =
        context.state.teams.iter().filter(|(_, team_state)| is_due(team_state)).map(|(team, _)| team.clone());
    teams.collect::<Vec<_>>().iter().for_each(|team| check(context, team));
}

pub(crate) fn next_time_limit(state: &State) -> impl Iterator<Item = u64> {
    state.teams.values().filter_map(|team_state| team_state.time_limit_at)
}
