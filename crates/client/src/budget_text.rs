//! A team's usage and limits as people see them.

use crate::short_duration::short_duration;
use protocol::control_socket::BudgetStatus;
use protocol::token_and_cost_usage::{Usage, format_count, format_dollars};

/// The elapsed part of the team's time limit, such as `2h of 8h`. `None` without a time limit.
pub fn time_budget_text(budget: &BudgetStatus, now: u64) -> Option<String> {
    budget.max_time_ms.map(|limit| {
        format!("{} of {}", short_duration(now.saturating_sub(budget.started_at)), short_duration(limit))
    })
}

/// Tokens and cost, such as `12.3k tokens, $0.42`. Empty if both are zero.
pub fn usage_text(usage: Usage) -> String {
    let tokens = (usage.tokens > 0).then(|| format!("{} tokens", format_count(usage.tokens)));
    let cost = (usage.microdollars > 0).then(|| format_dollars(usage.microdollars));
    tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
}

/// A team's usage and limits as one line, such as `12 of 200 turns, 2h of 8h, 12.3k of 5.0M tokens,
/// $0.42`. `time` is the part about the time limit, from [`time_budget_text`]; `None` omits it.
pub fn budget_text(budget: &BudgetStatus, time: Option<String>) -> String {
    let turns = budget.max_turns.map(|limit| format!("{} of {limit} turns", budget.turns));
    let with_limit = |count: u64, limit: Option<u64>, format: fn(u64) -> String| match limit {
        Some(limit) => Some(format!("{} of {}", format(count), format(limit))),
        None => (count > 0).then(|| format(count)),
    };
    let tokens = with_limit(budget.usage.tokens, budget.max_tokens, format_count)
        .map(|count| format!("{count} tokens"));
    let cost = with_limit(budget.usage.microdollars, budget.max_microdollars, format_dollars);
    let exhausted = budget.exhausted_reason.as_ref().map(|reason| format!("stopped: {reason}"));
    // The most important part comes first, because the line may be cut off.
    [exhausted, turns, time, tokens, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
