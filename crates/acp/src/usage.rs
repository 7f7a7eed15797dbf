//! What a turn of the agent has used up: the answer to its prompt tells the tokens, updates what the session has cost so
//! far.

use agent_client_protocol::v1::schema::{self, PromptResponse, SessionUpdate};
use protocol::usage::{Usage, to_microdollars};
use serde_json::Value;

/// Across the turns of one session.
#[derive(Debug, Default)]
pub(crate) struct UsageTracker {
    /// What the program counts up from its own start on; none of one that counts each turn by itself.
    token_total: Option<u64>,
    /// What the session had cost when the turn before ended, microdollars; none: it goes on with an earlier one, and never
    /// told.
    cost_before: Option<u64>,
    /// What it has cost by now.
    cost: Option<u64>,
}

impl UsageTracker {
    /// Before there is a session; `counts_on`: see [`crate::args::Args`].
    pub(crate) fn new(counts_on: bool) -> UsageTracker {
        UsageTracker { token_total: counts_on.then_some(0), ..UsageTracker::default() }
    }

    /// Takes in what the agent tells of its session. Amounts of other currencies are left out.
    pub(crate) fn add_update(&mut self, update: &SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update
            && let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD"))
        {
            self.cost = to_microdollars(cost.amount).or(self.cost);
        }
    }

    /// What came before the first is of no turn: an earlier life's session told while it was opened what it had cost. What
    /// comes behind the answer of a turn, as agents may tell it, is counted with the next.
    pub(crate) fn start_turn(&mut self, is_new: bool) {
        self.cost_before = self.cost_before.or(self.cost).or(is_new.then_some(0));
    }

    /// A turn has ended, with that answer.
    pub(crate) fn end_turn(&mut self, answer: Option<&PromptResponse>) -> Option<Usage> {
        let tokens = answer.and_then(token_count).map(|told| match &mut self.token_total {
            Some(before) => told.saturating_sub(std::mem::replace(before, told.max(*before))),
            None => told,
        });
        let cost = self.cost.zip(self.cost_before).map(|(now, before)| now.saturating_sub(before));
        self.cost_before = self.cost.or(self.cost_before);
        (tokens.is_some() || cost.is_some())
            .then(|| Usage { tokens: tokens.unwrap_or_default(), microdollars: cost.unwrap_or_default() })
    }
}

/// By the protocol's own word, else by that of Gemini CLI (0.61).
fn token_count(answer: &PromptResponse) -> Option<u64> {
    let all = |usage: &schema::Usage| {
        usage.total_tokens.max(usage.input_tokens.saturating_add(usage.output_tokens))
    };
    let quota = || {
        let count = answer.meta.as_ref()?.get("quota")?.get("token_count")?;
        let counts = ["input_tokens", "output_tokens"].map(|key| count.get(key).and_then(Value::as_u64));
        counts.into_iter().flatten().reduce(u64::saturating_add)
    };
    answer.usage.as_ref().map(all).or_else(quota)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cost(amount: f64, currency: &str) -> SessionUpdate {
        let cost = json!({"amount": amount, "currency": currency});
        let update = json!({"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": cost});
        serde_json::from_value(update).unwrap()
    }

    fn answer(more: &Value) -> PromptResponse {
        let mut answer = json!({"stopReason": "end_turn"});
        answer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(answer).unwrap()
    }

    fn usage(total: u64) -> PromptResponse {
        answer(&json!({"usage": {"totalTokens": total, "inputTokens": 0, "outputTokens": 0}}))
    }

    #[test]
    fn tokens_are_per_turn_and_cost_is_a_difference() {
        let mut spent = UsageTracker::new(false);
        spent.start_turn(true);
        assert_eq!(spent.end_turn(Some(&answer(&json!({})))), None, "nobody told");
        spent.start_turn(false);
        spent.add_update(&cost(0.5, "USD"));
        spent.add_update(&cost(9.0, "EUR"));
        assert_eq!(spent.end_turn(Some(&usage(30))), Some(Usage { tokens: 30, microdollars: 500_000 }));
        spent.start_turn(false);
        spent.add_update(&cost(0.75, "usd"));
        let quota = json!({"_meta": {"quota": {"token_count": {"input_tokens": 3, "output_tokens": 4}}}});
        assert_eq!(spent.end_turn(Some(&answer(&quota))), Some(Usage { tokens: 7, microdollars: 250_000 }));
        spent.start_turn(false);
        assert_eq!(spent.end_turn(None), Some(Usage::default()), "the turn failed");
    }

    #[test]
    fn late_cost_counts_for_the_next_turn() {
        let mut spent = UsageTracker::new(false);
        spent.start_turn(true);
        assert_eq!(spent.end_turn(Some(&usage(30))), Some(Usage { tokens: 30, microdollars: 0 }));
        spent.add_update(&cost(0.5, "USD"));
        spent.start_turn(false);
        assert_eq!(spent.end_turn(Some(&usage(30))), Some(Usage { tokens: 30, microdollars: 500_000 }));
    }

    #[test]
    fn cost_before_a_respawn_is_not_counted() {
        let mut silent = UsageTracker::new(false);
        silent.start_turn(false);
        silent.add_update(&cost(2.0, "USD"));
        assert_eq!(silent.end_turn(None), None, "of which turn it is nobody knows");
        silent.start_turn(false);
        silent.add_update(&cost(2.25, "USD"));
        assert_eq!(silent.end_turn(None), Some(Usage { tokens: 0, microdollars: 250_000 }));
        let mut told = UsageTracker::new(false);
        told.add_update(&cost(2.0, "USD"));
        told.start_turn(false);
        told.add_update(&cost(2.5, "USD"));
        assert_eq!(told.end_turn(None), Some(Usage { tokens: 0, microdollars: 500_000 }));
    }

    #[test]
    fn cumulative_tokens_are_subtracted() {
        let mut spent = UsageTracker::new(true);
        let mut tokens = |answer: Option<&PromptResponse>| spent.end_turn(answer).map(|used| used.tokens);
        assert_eq!(tokens(Some(&usage(30))), Some(30));
        assert_eq!([tokens(None), tokens(Some(&usage(9)))], [None, Some(0)], "a turn that failed");
        assert_eq!(tokens(Some(&usage(45))), Some(15));
    }
}
