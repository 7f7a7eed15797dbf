//! Computes the usage of each turn. The program's answer to a prompt reports tokens; its session
//! updates report the cost of the session so far.

use crate::open_session::SessionHistory;
use agent_client_protocol::v1::schema::{self, PromptResponse, SessionUpdate};
use protocol::token_and_cost_usage::{Usage, UsageScope, to_microdollars};
use serde_json::Value;

/// Computes the usage of the turns of one session.
#[derive(Debug, Default)]
pub(crate) struct UsageTracker {
    /// The highest token total that the program has reported. A total counts all turns since the
    /// program's start. `None` if the program reports each turn's tokens separately.
    token_total: Option<u64>,
    /// The cost of the session at the end of the previous turn, in microdollars. `None` if the
    /// session was loaded and its cost is not known yet.
    cost_before: Option<u64>,
    /// The cost of the session so far, in microdollars. `None` until the program reports a cost.
    cost: Option<u64>,
}

impl UsageTracker {
    /// Creates the tracker of a session's usage, before the session is opened. `scope` says what
    /// the program's token counts include: one turn, or everything since the program's start.
    pub(crate) fn new(scope: UsageScope) -> UsageTracker {
        let token_total = match scope {
            UsageScope::Session => Some(0),
            UsageScope::Turn => None,
        };
        UsageTracker { token_total, ..UsageTracker::default() }
    }

    /// Takes the cost from an update. Amounts in currencies other than USD are ignored.
    pub(crate) fn add_update(&mut self, update: &SessionUpdate) {
        if let SessionUpdate::UsageUpdate(usage) = update
            && let Some(cost) = usage.cost.as_ref().filter(|cost| cost.currency.eq_ignore_ascii_case("USD"))
        {
            self.cost = to_microdollars(cost.amount).or(self.cost);
        }
    }

    /// Starts a turn. A cost that was reported before the first turn counts for no turn: in a
    /// loaded session, it is the cost of the session's earlier turns. A cost that is reported after
    /// the end of a turn counts for the next turn.
    pub(crate) fn start_turn(&mut self, history: SessionHistory) {
        let cost_of_new = (history == SessionHistory::Empty).then_some(0);
        self.cost_before = self.cost_before.or(self.cost).or(cost_of_new);
    }

    /// Ends a turn and returns the turn's usage. `answer` is the program's answer to the prompt,
    /// `None` if the turn failed. Returns `None` if neither tokens nor cost of the turn are known.
    pub(crate) fn end_turn(&mut self, answer: Option<&PromptResponse>) -> Option<Usage> {
        let tokens = answer.and_then(token_count).map(|count| match &mut self.token_total {
            Some(before) => count.saturating_sub(std::mem::replace(before, count.max(*before))),
            None => count,
        });
        let cost = self.cost.zip(self.cost_before).map(|(now, before)| now.saturating_sub(before));
        self.cost_before = self.cost.or(self.cost_before);
        (tokens.is_some() || cost.is_some())
            .then(|| Usage { tokens: tokens.unwrap_or_default(), microdollars: cost.unwrap_or_default() })
    }
}

/// The token count in the program's answer to a prompt: in the protocol's field `usage`, or else in
/// `_meta.quota.token_count`, which Gemini CLI 0.61 sends. `None` if the answer has neither.
fn token_count(answer: &PromptResponse) -> Option<u64> {
    let total = |usage: &schema::Usage| {
        usage.total_tokens.max(usage.input_tokens.saturating_add(usage.output_tokens))
    };
    let quota = || {
        let count = answer.meta.as_ref()?.get("quota")?.get("token_count")?;
        let counts = ["input_tokens", "output_tokens"].map(|key| count.get(key).and_then(Value::as_u64));
        counts.into_iter().flatten().reduce(u64::saturating_add)
    };
    answer.usage.as_ref().map(total).or_else(quota)
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

    fn response(more: &Value) -> PromptResponse {
        let mut response = json!({"stopReason": "end_turn"});
        response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(response).unwrap()
    }

    fn usage(total: u64) -> PromptResponse {
        response(&json!({"usage": {"totalTokens": total, "inputTokens": 0, "outputTokens": 0}}))
    }

    #[test]
    fn tokens_are_per_turn_and_cost_is_a_difference() {
        let mut tracker = UsageTracker::new(UsageScope::Turn);
        tracker.start_turn(SessionHistory::Empty);
        assert_eq!(tracker.end_turn(Some(&response(&json!({})))), None, "no usage is reported");
        tracker.start_turn(SessionHistory::HasPrompts);
        tracker.add_update(&cost(0.5, "USD"));
        tracker.add_update(&cost(9.0, "EUR"));
        assert_eq!(tracker.end_turn(Some(&usage(30))), Some(Usage { tokens: 30, microdollars: 500_000 }));
        tracker.start_turn(SessionHistory::HasPrompts);
        tracker.add_update(&cost(0.75, "usd"));
        let quota = json!({"_meta": {"quota": {"token_count": {"input_tokens": 3, "output_tokens": 4}}}});
        assert_eq!(
            tracker.end_turn(Some(&response(&quota))),
            Some(Usage { tokens: 7, microdollars: 250_000 })
        );
        tracker.start_turn(SessionHistory::HasPrompts);
        assert_eq!(tracker.end_turn(None), Some(Usage::default()), "the turn failed");
    }

    #[test]
    fn late_cost_counts_for_the_next_turn() {
        let mut tracker = UsageTracker::new(UsageScope::Turn);
        tracker.start_turn(SessionHistory::Empty);
        assert_eq!(tracker.end_turn(Some(&usage(30))), Some(Usage { tokens: 30, microdollars: 0 }));
        tracker.add_update(&cost(0.5, "USD"));
        tracker.start_turn(SessionHistory::HasPrompts);
        assert_eq!(tracker.end_turn(Some(&usage(30))), Some(Usage { tokens: 30, microdollars: 500_000 }));
    }

    #[test]
    fn cost_before_a_respawn_is_not_counted() {
        let mut tracker = UsageTracker::new(UsageScope::Turn);
        tracker.start_turn(SessionHistory::HasPrompts);
        tracker.add_update(&cost(2.0, "USD"));
        assert_eq!(tracker.end_turn(None), None, "the cost belongs to an unknown turn");
        tracker.start_turn(SessionHistory::HasPrompts);
        tracker.add_update(&cost(2.25, "USD"));
        assert_eq!(tracker.end_turn(None), Some(Usage { tokens: 0, microdollars: 250_000 }));
        let mut with_early_report = UsageTracker::new(UsageScope::Turn);
        with_early_report.add_update(&cost(2.0, "USD"));
        with_early_report.start_turn(SessionHistory::HasPrompts);
        with_early_report.add_update(&cost(2.5, "USD"));
        assert_eq!(with_early_report.end_turn(None), Some(Usage { tokens: 0, microdollars: 500_000 }));
    }

    #[test]
    fn cumulative_tokens_are_subtracted() {
        let mut tracker = UsageTracker::new(UsageScope::Session);
        let mut tokens =
            |response: Option<&PromptResponse>| tracker.end_turn(response).map(|usage| usage.tokens);
        assert_eq!(tokens(Some(&usage(30))), Some(30));
        assert_eq!([tokens(None), tokens(Some(&usage(9)))], [None, Some(0)], "the turn failed");
        assert_eq!(tokens(Some(&usage(45))), Some(15));
    }
}
