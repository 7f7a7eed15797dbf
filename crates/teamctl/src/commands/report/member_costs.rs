//! What a team cost: turns, tokens and dollars, for each member and in all.

use super::team_events::TeamEvents;
use client::budget_text::{budget_text, time_budget_text, usage_text};
use protocol::control_socket::BudgetStatus;
use protocol::roster_file_for_clients::TeamUsageRecord;
use protocol::team_and_member_names::MemberName;
use protocol::token_and_cost_usage::Usage;
use serde::Serialize;
use std::collections::BTreeSet;

/// What the team cost. The keys are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct TeamCost {
    /// How many turns began since the time of the report.
    pub(super) turns: u64,
    /// Tokens and cost of the whole life of the team. `None` if they are not kept any more.
    pub(super) usage: Option<Usage>,
    /// Usage and limits. `None` without a daemon, or without limits and usage.
    pub(super) budget: Option<BudgetStatus>,
    pub(super) members: Vec<MemberCost>,
}

/// What a member cost.
#[derive(Debug, Serialize)]
pub(super) struct MemberCost {
    name: MemberName,
    turns: u64,
    usage: Usage,
}

impl TeamCost {
    /// `usage` is `None` for a deleted team.
    pub(super) fn new(
        events: &TeamEvents,
        usage: Option<&TeamUsageRecord>,
        budget: Option<BudgetStatus>,
    ) -> TeamCost {
        let usage_of = |name| usage.and_then(|usage| usage.members.get(name)).copied().unwrap_or_default();
        let turns_of = |name| events.members.get(name).map_or(0, |member| member.turns);
        let reporting = usage.into_iter().flat_map(|usage| usage.members.keys());
        let names: BTreeSet<&MemberName> = events.members.keys().chain(reporting).collect();
        let members: Vec<MemberCost> = names
            .into_iter()
            .map(|name| MemberCost { name: name.clone(), turns: turns_of(name), usage: usage_of(name) })
            .filter(|member| member.turns > 0 || !member.usage.is_zero())
            .collect();
        let turns = members.iter().map(|member| member.turns).sum();
        TeamCost { turns, usage: usage.map(|usage| usage.total), budget, members }
    }

    /// The total cost of the team: `34 turns, 1.2M tokens, $3.20`, or with a limit `34 of 200
    /// turns`. If the report begins at a time `since`, the number of turns since then comes first.
    pub(super) fn total_text(&self, since: Option<u64>, now: u64) -> String {
        let turns = count_turns(self.turns);
        let budget = self.budget.as_ref().map(|budget| budget_text(budget, time_budget_text(budget, now)));
        let usage = self.usage.filter(|usage| !usage.is_zero()).map(usage_text);
        let total = budget.filter(|text| !text.is_empty()).or(usage);
        let has_turn_limit = self.budget.as_ref().is_some_and(|budget| budget.max_turns.is_some());
        match (total, since) {
            (None, _) => turns,
            (Some(total), Some(_)) => format!("{turns}; in all {total}"),
            (Some(total), None) if has_turn_limit => total,
            (Some(total), None) => format!("{turns}, {total}"),
        }
    }

    /// The cost of each member, such as `ann: 14 turns, 120.0k tokens, $0.42`.
    pub(super) fn member_texts(&self) -> Vec<String> {
        let text = |member: &MemberCost| {
            let usage = (!member.usage.is_zero()).then(|| format!(", {}", usage_text(member.usage)));
            format!("{}: {}{}", member.name, count_turns(member.turns), usage.unwrap_or_default())
        };
        self.members.iter().map(text).collect()
    }
}

fn count_turns(count: u64) -> String {
    if count == 1 { "1 turn".to_owned() } else { format!("{count} turns") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_names_turns_once_and_says_what_is_of_the_whole_time() {
        let usage = Usage { tokens: 1_000, microdollars: 0 };
        let budget = |max_turns| BudgetStatus {
            turns: 9,
            max_turns,
            usage,
            max_tokens: Some(5_000),
            max_microdollars: None,
            started_at: 0,
            max_time_ms: None,
            exhausted_reason: None,
        };
        let text = |usage, budget, since| {
            let cost = TeamCost { turns: 4, usage, budget, members: Vec::new() };
            cost.total_text(since, 0)
        };
        assert_eq!(text(None, None, None), "4 turns");
        assert_eq!(text(Some(Usage::default()), None, Some(1)), "4 turns");
        assert_eq!(text(Some(usage), None, None), "4 turns, 1.0k tokens");
        assert_eq!(text(Some(usage), Some(budget(None)), None), "4 turns, 1.0k of 5.0k tokens");
        assert_eq!(text(Some(usage), Some(budget(Some(10))), None), "9 of 10 turns, 1.0k of 5.0k tokens");
        assert_eq!(
            text(Some(usage), Some(budget(Some(10))), Some(1)),
            "4 turns; in all 9 of 10 turns, 1.0k of 5.0k tokens"
        );
    }
}
