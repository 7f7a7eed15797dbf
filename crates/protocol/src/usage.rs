//! What agents use up, as their programs report it: tokens, and money.
//!
//! Programs count differently: some tell each turn, some all of their session again and again, also in the next
//! process that goes on with it. A `Report` says since when it counts, so that nothing counts twice.

use serde::{Deserialize, Serialize};
use std::fmt;

/// In a dollar of the United States.
const MICRODOLLARS_PER_DOLLAR: u64 = 1_000_000;

/// An amount; nothing where nobody reports any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Of whatever kind the program counts.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub tokens: u64,
    /// Millionths of a dollar of the United States.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub microdollars: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's interface")]
fn is_zero_count(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Nobody reports any, or it is none.
    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }

    /// Both; what is too much for a count is the most that it can hold.
    #[must_use]
    pub fn saturating_add(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens.saturating_add(other.tokens),
            microdollars: self.microdollars.saturating_add(other.microdollars),
        }
    }

    /// Of each the larger count: one that is told again may have lost something, or come too late.
    #[must_use]
    pub fn max_each(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens.max(other.tokens),
            microdollars: self.microdollars.max(other.microdollars),
        }
    }

    /// What of it is beyond `before`.
    #[must_use]
    pub fn saturating_sub(self, before: Usage) -> Usage {
        Usage {
            tokens: self.tokens.saturating_sub(before.tokens),
            microdollars: self.microdollars.saturating_sub(before.microdollars),
        }
    }
}

/// As people read it: `950`, `12.3k`, `1.2M`, `$0.42`, `12.3k $0.42`; a dash for nothing.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = (self.tokens > 0).then(|| format_count(self.tokens));
        let cost = (self.microdollars > 0).then(|| format_dollars(self.microdollars));
        let words: Vec<String> = tokens.into_iter().chain(cost).collect();
        f.pad(if words.is_empty() { "-".to_owned() } else { words.join(" ") }.as_str())
    }
}

/// A count in at most six characters: `950`, `12.3k`, `1.2M`.
pub fn format_count(count: u64) -> String {
    let tenths = |unit: u64, sign: char| format!("{}.{}{sign}", count / unit, count % unit * 10 / unit);
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => tenths(1_000, 'k'),
        1_000_000..1_000_000_000 => tenths(1_000_000, 'M'),
        _ => tenths(1_000_000_000, 'G'),
    }
}

/// `$3.20`; what is less than a cent is one.
pub fn format_dollars(microdollars: u64) -> String {
    let cents = microdollars.div_ceil(MICRODOLLARS_PER_DOLLAR / 100);
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// So many millionths, of an amount in dollars; none where that is no amount.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and saturates")]
pub fn to_microdollars(dollars: f64) -> Option<u64> {
    (dollars.is_finite() && dollars >= 0.0).then(|| (dollars * MICRODOLLARS_PER_DOLLAR as f64).round() as u64)
}

/// What a program has told at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageReading {
    /// How much.
    pub usage: Usage,
    /// Since when.
    pub scope: UsageScope,
}

/// What a program has told so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// The session that it counts from the beginning of; none: this life of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "session")]
    pub session_id: Option<String>,
    /// How much that was.
    #[serde(rename = "used")]
    pub usage: Usage,
}

/// Where a program tells it: in lines of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UsagePaths {
    /// The counts of tokens that are added up, each as the keys to it from the line's own on, with dots between them:
    /// `usage.output_tokens`. A `*` is every key there.
    #[serde(default)]
    pub tokens: Vec<String>,
    /// The amount in dollars of the United States, the same way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Each line tells a part, and those with the same value at this place are one. None: the last line tells all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "once")]
    pub part_id: Option<String>,
    /// What is counted from.
    #[serde(default)]
    #[serde(rename = "per")]
    pub scope: UsageScope,
}

/// What a program's count begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// Every turn anew.
    #[default]
    Turn,
    /// The session, whichever process goes on with it.
    Session,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(tokens: u64, microdollars: u64) -> Usage {
        Usage { tokens, microdollars }
    }

    #[test]
    fn it_is_short_for_people() {
        let told = |tokens, microdollars| used(tokens, microdollars).to_string();
        assert_eq!(told(0, 0), "-");
        assert_eq!(told(999, 0), "999");
        assert_eq!(told(1_000, 0), "1.0k");
        assert_eq!(told(999_999, 420_000), "999.9k $0.42");
        assert_eq!(told(1_250_000, 1), "1.2M $0.01");
        assert_eq!(told(0, 12_345_678), "$12.35");
        assert_eq!(told(u64::MAX, u64::MAX), "18446744073.7G $18446744073709.56");
    }

    #[test]
    fn what_is_too_much_stays_the_most_and_what_became_less_is_nothing_new() {
        assert_eq!(used(u64::MAX, 1).saturating_add(used(1, 1)), used(u64::MAX, 2));
        assert_eq!(used(10, 5).saturating_sub(used(4, 5)), used(6, 0));
        assert_eq!(used(3, 7).saturating_sub(used(4, 5)), used(0, 2));
        assert_eq!(used(3, 7).max_each(used(4, 5)), used(4, 7));
    }

    #[test]
    fn only_an_amount_is_one() {
        assert_eq!(to_microdollars(0.123_456_7), Some(123_457));
        assert_eq!(to_microdollars(1e300), Some(u64::MAX));
        assert_eq!([-1.0, f64::NAN, f64::INFINITY].map(to_microdollars), [None; 3]);
    }
}
