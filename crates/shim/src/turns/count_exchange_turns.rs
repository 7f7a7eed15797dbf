//! Counts the turns of an exchange, in which two agents answer each other's messages. Without a
//! limit such an exchange goes on until the budget is used up.
//!
//! A turn counts if it handles a message of another member, and the agent sends a message to this
//! member during the turn. But the turn does not count if the handled message is older than the
//! start of the last counted turn. Such a message cannot be an answer to what the agent wrote in
//! that turn.
//!
//! If too many turns count within a minute or an hour, a pause begins. During the pause the agent
//! gets no messages of the other member. A message of a person or of the lead ends all pauses and
//! resets the counts.
//!
//! The limit holds for members whose turns teamd starts. A program that reads its inbox itself, or
//! that gets its messages from hooks, has no turn loop and no limit.

use protocol::control_socket::ExchangePause;
use protocol::policy::ExchangeLimits;
use protocol::team_and_member_names::MemberName;
use std::collections::{BTreeMap, BTreeSet};

/// The times of one turn on a message, in milliseconds since the epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangeTurnTimes {
    /// When the sender wrote the message.
    pub(super) message_sent_at: u64,
    pub(super) turn_started_at: u64,
    pub(super) turn_ended_at: u64,
}

/// The turns on messages of each other member.
#[derive(Debug, Default)]
pub(super) struct ExchangeTurns {
    exchanges: BTreeMap<MemberName, Exchange>,
    /// The unread messages of a person or of the lead at the last scan.
    known_messages: BTreeSet<u64>,
}

/// The turns on messages of one member. Times are in milliseconds since the epoch.
#[derive(Debug, Default)]
struct Exchange {
    /// When the turns that counted began, in order.
    started_at: Vec<u64>,
    pause: Option<ExchangePause>,
}

impl ExchangeTurns {
    /// Records a turn on a message of `sender`, in which the agent also sent a message to `sender`.
    /// If there are now as many such turns as a limit allows, returns the pause that begins at the
    /// end of the turn.
    pub(super) fn add_turn(
        &mut self,
        sender: &MemberName,
        times: ExchangeTurnTimes,
        limits: ExchangeLimits,
    ) -> Option<&ExchangePause> {
        let ExchangeTurnTimes { message_sent_at, turn_started_at, turn_ended_at: now } = times;
        let exchange = self.exchanges.entry(sender.clone()).or_default();
        let longest_ms = limits.windows().map(|(within_ms, _)| within_ms).max().unwrap_or(0);
        // A time after `now` is from before the clock was set back.
        exchange
            .started_at
            .retain(|started_at| now.checked_sub(*started_at).is_some_and(|age| age < longest_ms));
        if exchange.started_at.last().is_some_and(|last_start| message_sent_at < *last_start) {
            return None;
        }
        exchange.started_at.push(turn_started_at);
        exchange.pause = reached_limit(&exchange.started_at, now, limits).map(|(within_ms, turns)| {
            ExchangePause { with: sender.clone(), turns, within_ms, until: now + within_ms }
        });
        exchange.pause.as_ref()
    }

    /// Ends all pauses and resets the counts, if a person or the lead has sent a new message.
    /// `unread` contains all unread messages of persons and of the lead. A message is new if it was
    /// not in `unread` at the previous call.
    pub(super) fn note_messages_of_lead(&mut self, unread: BTreeSet<u64>) {
        if !unread.is_subset(&self.known_messages) {
            self.exchanges.clear();
        }
        self.known_messages = unread;
    }

    /// Whether no turn was counted since the last message of a person or of the lead.
    pub(super) fn is_empty(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// The pause for messages of `sender`, if there is one at `now`. A pause ends early if the
    /// limit was raised, or the clock was set back to a time before the pause.
    pub(super) fn pause(
        &self,
        sender: &MemberName,
        now: u64,
        limits: ExchangeLimits,
    ) -> Option<&ExchangePause> {
        let pause = self.exchanges.get(sender)?.pause.as_ref()?;
        let is_limit = |(within_ms, turns)| within_ms == pause.within_ms && turns <= pause.turns;
        let period = pause.until.saturating_sub(pause.within_ms)..pause.until;
        (period.contains(&now) && limits.windows().any(is_limit)).then_some(pause)
    }
}

/// The first limit that the turns have reached at `now`, as a pair: the period of the limit in
/// milliseconds, and how many turns began within this period.
fn reached_limit(started_at: &[u64], now: u64, limits: ExchangeLimits) -> Option<(u64, u32)> {
    limits.windows().find_map(|(within_ms, limit)| {
        let count = started_at.iter().filter(|start| now.saturating_sub(**start) < within_ms).count();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        (count >= limit).then_some((within_ms, count))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000;
    const LIMITS: ExchangeLimits = ExchangeLimits { turns_per_minute: 3, turns_per_hour: 5 };

    fn bob() -> MemberName {
        MemberName::parse("bob").unwrap()
    }

    /// Records `count` turns on messages of the member bob, one every `interval` milliseconds.
    /// Returns one item for each turn: `None`, or the pause that begins after the turn, as the
    /// limit's period in minutes and the end of the pause in milliseconds.
    fn pauses(
        turns: &mut ExchangeTurns,
        count: u64,
        first_start: u64,
        interval: u64,
    ) -> Vec<Option<(u64, u64)>> {
        let starts = (0..count).map(|n| first_start + n * interval);
        let pause_after = |start: u64| {
            let times = ExchangeTurnTimes {
                message_sent_at: start,
                turn_started_at: start,
                turn_ended_at: start + 1,
            };
            let pause = turns.add_turn(&bob(), times, LIMITS);
            pause.map(|pause| (pause.within_ms / MINUTE, pause.until))
        };
        starts.map(pause_after).collect()
    }

    #[test]
    fn limits_of_a_minute_and_of_an_hour_begin_a_pause() {
        let mut turns = ExchangeTurns::default();
        assert_eq!(pauses(&mut turns, 3, 0, 10), [None, None, Some((1, 21 + MINUTE))]);
        assert!(turns.pause(&bob(), 20 + MINUTE, LIMITS).is_some());
        assert!(turns.pause(&bob(), 21 + MINUTE, LIMITS).is_none());
        let end = 4 * MINUTE + 1 + 60 * MINUTE;
        let slow = pauses(&mut ExchangeTurns::default(), 5, 0, MINUTE);
        assert_eq!(slow, [None, None, None, None, Some((60, end))]);
        let slower = pauses(&mut ExchangeTurns::default(), 20, 0, 15 * MINUTE);
        assert!(slower.iter().all(Option::is_none), "{slower:?}");
    }

    #[test]
    fn turns_before_a_short_pause_count_for_the_longer_limit() {
        let mut turns = ExchangeTurns::default();
        assert_eq!(pauses(&mut turns, 3, 0, 1).last(), Some(&Some((1, 3 + MINUTE))));
        assert_eq!(pauses(&mut turns, 2, 2 * MINUTE, 1), [None, Some((60, 62 * MINUTE + 2))]);
        assert_eq!(pauses(&mut turns, 2, 63 * MINUTE, 1), [None, None], "after the pause");
    }

    #[test]
    fn messages_that_had_waited_do_not_count() {
        let mut turns = ExchangeTurns::default();
        for start in 10..20 {
            let times =
                ExchangeTurnTimes { message_sent_at: 5, turn_started_at: start, turn_ended_at: start };
            assert!(turns.add_turn(&bob(), times, LIMITS).is_none());
        }
        assert_eq!(pauses(&mut turns, 2, 20, 1).last(), Some(&Some((1, 22 + MINUTE))));
    }

    #[test]
    fn clock_that_is_set_back_ends_pauses_and_counts_anew() {
        let mut turns = ExchangeTurns::default();
        pauses(&mut turns, 3, 60 * MINUTE, 1);
        assert!(turns.pause(&bob(), 60 * MINUTE + 3, LIMITS).is_some());
        assert!(turns.pause(&bob(), MINUTE, LIMITS).is_none());
        assert_eq!(pauses(&mut turns, 3, MINUTE, 1), [None, None, Some((1, 2 * MINUTE + 3))]);
    }

    #[test]
    fn other_limits_and_a_new_message_of_the_lead_end_the_pause() {
        let mut turns = ExchangeTurns::default();
        pauses(&mut turns, 3, 0, 1);
        let is_paused = |turns: &ExchangeTurns, limits| turns.pause(&bob(), 5, limits).is_some();
        let limits = |turns_per_minute| ExchangeLimits { turns_per_minute, ..LIMITS };
        assert_eq!([0, 3, 4].map(|limit| is_paused(&turns, limits(limit))), [false, true, false]);
        turns.note_messages_of_lead(BTreeSet::from([1]));
        assert!(!is_paused(&turns, LIMITS));
        pauses(&mut turns, 3, 0, 1);
        turns.note_messages_of_lead(BTreeSet::from([1]));
        assert!(is_paused(&turns, LIMITS), "the message is not new");
    }
}
