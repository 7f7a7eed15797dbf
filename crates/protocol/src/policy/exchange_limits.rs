//! Limits how many turns a member may spend on messages from one other member.
//!
//! Without such limits, two agents could answer each other's messages until the budget is used up.
//! The limits apply only to members whose turns teamd starts.

use serde::{Deserialize, Serialize};

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Maximum numbers of turns that a member may spend on messages from one other member. 0 stands for
/// no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ExchangeLimits {
    /// Maximum number of turns in a minute.
    pub turns_per_minute: u32,
    /// Maximum number of turns in an hour.
    pub turns_per_hour: u32,
}

impl Default for ExchangeLimits {
    /// A turn takes several seconds. So two agents that have more than six turns a minute do little
    /// else than answer each other. Thirty turns an hour leave room for a long discussion.
    fn default() -> ExchangeLimits {
        ExchangeLimits { turns_per_minute: 6, turns_per_hour: 30 }
    }
}

impl ExchangeLimits {
    /// The limits that are set, the longest period first. Each pair has the length of the period in
    /// milliseconds, and the maximum number of turns in it.
    pub fn windows(self) -> impl Iterator<Item = (u64, u32)> {
        [(HOUR_MS, self.turns_per_hour), (MINUTE_MS, self.turns_per_minute)]
            .into_iter()
            .filter(|(_, turns)| *turns > 0)
    }
}
