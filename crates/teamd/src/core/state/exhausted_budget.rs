//! Reads a team's budget: what is used, what is left, and whether it is exhausted.

use crate::core::event_time::Now;
use crate::core::state::core_state::State;
use crate::core::state::team::TeamState;
use protocol::control_socket::BudgetStatus;
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::policy::Policy;
use protocol::team_and_member_names::TeamName;
use protocol::token_and_cost_usage::{Usage, format_count, format_dollars};

pub(crate) fn is_exhausted(state: &State, team: &TeamName) -> bool {
    state.teams.get(team).is_some_and(|team_state| team_state.usage.exhausted_reason.is_some())
}

/// The error for a spawn in a team whose budget is exhausted.
pub(crate) fn exhausted_error(state: &State, team: &TeamName) -> Option<ErrorReport> {
    let reason = state.teams.get(team)?.usage.exhausted_reason.as_ref()?;
    let message = format!("cannot start a member of {team}: {reason}");
    let help = match state.host_links.home_of(team) {
        Some(_) => format!("give it more at its home with: teamctl policy FILE -t {team}"),
        None => format!("give it more with: teamctl policy FILE -t {team}"),
    };
    Some(ErrorReport::new(ErrorKind::Refused, message).with_help(help))
}

/// The budget for `status`. `None` if there is nothing to show: the team has no limits here and no
/// reported usage, and the home of the team has not reported that the budget is exhausted.
pub(crate) fn budget_status(team_state: &TeamState) -> Option<BudgetStatus> {
    let (policy, team_usage) = (&team_state.policy, &team_state.usage);
    let is_known =
        policy.has_limits() || !team_usage.usage.is_zero() || team_usage.exhausted_reason.is_some();
    is_known.then(|| BudgetStatus {
        turns: team_usage.turns,
        max_turns: policy.max_turns,
        usage: team_usage.usage,
        max_tokens: policy.max_tokens,
        max_microdollars: policy.max_microdollars,
        started_at: team_usage.started_at,
        max_time_ms: policy.max_time_ms,
        exhausted_reason: team_usage.exhausted_reason.clone(),
    })
}

/// How much of the budget one member may use. `None` if the policy does not limit a member's share.
pub(crate) fn member_limit(policy: &Policy) -> Option<Usage> {
    let percent = u64::from(policy.member_share?);
    let share = |limit: Option<u64>| {
        limit.map_or(u64::MAX, |limit| limit / 100 * percent + limit % 100 * percent / 100)
    };
    Some(Usage { tokens: share(policy.max_tokens), microdollars: share(policy.max_microdollars) })
}

/// How much of the budget a member on this host may use. At an annex, the home has sent this limit.
pub(crate) fn member_limit_here(state: &State, team: &TeamName) -> Option<Usage> {
    match state.host_links.home_budget(team) {
        Some(budget) => budget.member_limit,
        None => member_limit(&state.teams.get(team)?.policy),
    }
}

/// Why a member with this usage is suspended and not started again, as a text for people. `limit`
/// is the member's share of the budget. `None` if the member has not used up its share.
pub(crate) fn used_share_reason(limit: Option<Usage>, usage: Usage) -> Option<String> {
    let limit = limit?;
    let amount = match usage {
        usage if usage.tokens >= limit.tokens => format!("{} tokens", format_count(limit.tokens)),
        usage if usage.microdollars >= limit.microdollars => format_dollars(limit.microdollars),
        _ => return None,
    };
    Some(format!("its share of the budget, {amount}, is used up"))
}

pub(crate) fn exhausted_reason(team_state: &TeamState, left_ms: Option<u64>) -> Option<String> {
    let (policy, team_usage) = (&team_state.policy, &team_state.usage);
    let limits = [
        (policy.max_turns, team_usage.turns, policy.max_turns.map(|limit| format!("{limit} turns"))),
        (
            policy.max_tokens,
            team_usage.usage.tokens,
            policy.max_tokens.map(|limit| format!("{} tokens", format_count(limit))),
        ),
        (policy.max_microdollars, team_usage.usage.microdollars, policy.max_microdollars.map(format_dollars)),
    ];
    let exceeded = limits.into_iter().find(|(limit, used, _)| limit.is_some_and(|limit| *used >= limit));
    let exceeded =
        exceeded.and_then(|(_, _, amount)| amount).map(|amount| format!("its budget of {amount} is used up"));
    exceeded.or_else(|| (left_ms == Some(0)).then(|| "its time is used up".to_owned()))
}

/// How much of the team's time is left, in milliseconds. `None` without a time limit.
pub(crate) fn remaining_ms(team_state: &TeamState, now: Now) -> Option<u64> {
    Some(team_state.policy.max_time_ms?.saturating_sub(now.wall.saturating_sub(team_state.usage.started_at)))
}
