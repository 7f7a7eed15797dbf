//! Barriers that the home has sent. A barrier is a numbered item that the annex answers once it has
//! handled all earlier items. If an earlier item only made the annex ask for the whole config, the
//! answer came too early, and the home sends the barrier again.

use std::collections::BTreeSet;

/// The barriers without an answer, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    sent: BTreeSet<u64>,
    /// Those that were sent before a config for which the annex has asked.
    early: BTreeSet<u64>,
}

impl Barriers {
    /// Notes that a barrier is sent now.
    pub(crate) fn note_sent(&mut self, number: u64) {
        self.sent.insert(number);
    }

    /// Notes that a config is sent for which the annex has asked.
    pub(crate) fn note_config_sent(&mut self) {
        self.early.append(&mut self.sent);
    }

    /// Notes an answer. Returns whether the barrier must be sent again.
    pub(crate) fn is_answered_too_early(&mut self, number: u64) -> bool {
        self.sent.remove(&number);
        self.early.remove(&number)
    }
}
