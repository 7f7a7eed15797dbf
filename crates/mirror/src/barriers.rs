//! Barriers that the home has sent. A barrier is a numbered item by which the home asks the annex
//! whether it has handled all earlier items.
//!
//! An annex that has lost a team's config cannot apply a change of this config. It asks the home
//! for the whole config, and answers the next barrier nevertheless. The home takes this answer as
//! too early: it sends the config, and then the barrier again.

use std::collections::BTreeMap;

/// The barriers without an answer, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    unanswered: BTreeMap<u64, UnansweredBarrier>,
}

/// Counts how often the home has sent a barrier that has no answer yet. After each new connection
/// the home sends the barrier again, and the annex answers each copy, the oldest first.
#[derive(Debug, Default)]
struct UnansweredBarrier {
    /// Before a config for which the annex has asked.
    sent_early: u32,
    sent_in_time: u32,
}

/// What the answer to a barrier says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierAnswer {
    /// The barrier must be sent again.
    TooEarly,
    InTime,
}

impl Barriers {
    /// Notes that a barrier is sent now.
    pub(crate) fn note_sent(&mut self, number: u64) {
        self.unanswered.entry(number).or_default().sent_in_time += 1;
    }

    /// Notes that a config is sent for which the annex has asked.
    pub(crate) fn note_config_sent(&mut self) {
        for barrier in self.unanswered.values_mut() {
            barrier.sent_early += std::mem::take(&mut barrier.sent_in_time);
        }
    }

    /// Notes an answer.
    pub(crate) fn note_answer(&mut self, number: u64) -> BarrierAnswer {
        match self.unanswered.get_mut(&number) {
            Some(barrier) if barrier.sent_early > 0 => {
                barrier.sent_early -= 1;
                BarrierAnswer::TooEarly
            }
            _ => {
                self.unanswered.remove(&number);
                BarrierAnswer::InTime
            }
        }
    }
}
