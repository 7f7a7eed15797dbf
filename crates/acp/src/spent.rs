//! What a turn of the agent has used up: the answer to its prompt tells the tokens, updates what the session has cost so
//! far.

use agent_client_protocol::v1::schema::{PromptResponse, SessionUpdate, Usage};
use protocol::used::{Per, Reading, Used, microdollars};
use serde_json::Value;

/// Across the turns of one session.
#[derive(Debug)]
pub(crate) struct Spent {
    /// Since when the program counts the tokens that it tells.
    per: Per,
    /// What the session had cost before this turn, microdollars; none: an earlier life's, which never told.
    before: Option<u64>,
    /// What it has cost by now.
    now: Option<u64>,
}

impl Spent {
    /// One that goes on with an earlier session does not know what that had cost.
    pub(crate) fn of_session(is_new: bool, per: Per) -> Spent {
        Spent { per, before: is_new.then_some(0), now: None }
    }

    /// Takes in what the agent tells of its session. Amounts of other currencies are left out.
    pub(crate) fn update(&mut self, update: &SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update
            && let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD"))
        {
            self.now = microdollars(cost.amount).or(self.now);
        }
    }

    /// A turn has ended, with that answer.
    pub(crate) fn turn(&mut self, answer: Option<&PromptResponse>) -> Option<Reading> {
        let tokens = answer.and_then(tokens);
        let cost = match self.per {
            Per::Session => self.now,
            Per::Turn => self.now.zip(self.before).map(|(now, before)| now.saturating_sub(before)),
        };
        self.before = self.now.or(self.before);
        let used = Used { tokens: tokens.unwrap_or_default(), microdollars: cost.unwrap_or_default() };
        (tokens.is_some() || cost.is_some()).then_some(Reading { used, per: self.per })
    }
}

/// By the protocol's own word, else by that of Gemini CLI (0.61).
fn tokens(answer: &PromptResponse) -> Option<u64> {
    let all = |usage: &Usage| usage.total_tokens.max(usage.input_tokens.saturating_add(usage.output_tokens));
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

    fn turns(tokens: u64, microdollars: u64) -> Option<Reading> {
        Some(Reading { used: Used { tokens, microdollars }, per: Per::Turn })
    }

    #[test]
    fn tokens_are_the_turns_own_and_cost_is_what_came_to_the_sessions() {
        let mut spent = Spent::of_session(true, Per::Turn);
        assert_eq!(spent.turn(Some(&answer(&json!({})))), None, "nobody told");
        spent.update(&cost(0.5, "USD"));
        spent.update(&cost(9.0, "EUR"));
        let usage = answer(&json!({"usage": {"totalTokens": 30, "inputTokens": 20, "outputTokens": 10}}));
        assert_eq!(spent.turn(Some(&usage)), turns(30, 500_000));
        spent.update(&cost(0.75, "usd"));
        let quota = json!({"_meta": {"quota": {"token_count": {"input_tokens": 3, "output_tokens": 4}}}});
        assert_eq!(spent.turn(Some(&answer(&quota))), turns(7, 250_000));
    }

    #[test]
    fn what_an_earlier_life_had_paid_is_not_counted_again() {
        let mut spent = Spent::of_session(false, Per::Turn);
        spent.update(&cost(2.0, "USD"));
        assert_eq!(spent.turn(None), None);
        spent.update(&cost(2.5, "USD"));
        assert_eq!(spent.turn(None), turns(0, 500_000));
    }

    #[test]
    fn of_a_count_that_goes_on_from_turn_to_turn_all_is_told() {
        let mut spent = Spent::of_session(false, Per::Session);
        spent.update(&cost(0.5, "USD"));
        let usage = answer(&json!({"usage": {"totalTokens": 45, "inputTokens": 0, "outputTokens": 0}}));
        let used = Used { tokens: 45, microdollars: 500_000 };
        assert_eq!(spent.turn(Some(&usage)), Some(Reading { used, per: Per::Session }));
    }
}
