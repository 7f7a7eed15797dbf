//! Usage of agents: tokens and cost, as their programs report them.
//!
//! Some programs report the usage of each turn. The shim adds these reports up to a total for the
//! current spawn. Other programs report a total for their session, which may have begun in an
//! earlier spawn. A [`UsageReport`] says which of the two its total is for, so that teamd counts no
//! usage twice.

use serde::{Deserialize, Serialize};
use std::fmt;

/// One US dollar in millionths.
const MICRODOLLARS_PER_DOLLAR: u64 = 1_000_000;

/// Tokens and cost. Zero if the program reports none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Number of tokens of all kinds that the program counts.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub tokens: u64,
    /// Cost in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub microdollars: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's interface")]
fn is_zero_count(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Whether both tokens and cost are zero.
    pub fn is_zero(&self) -> bool {
        *self == Usage::default()
    }

    /// The sum of both usages. An overflow gives the largest number.
    #[must_use]
    pub fn saturating_add(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens.saturating_add(other.tokens),
            microdollars: self.microdollars.saturating_add(other.microdollars),
        }
    }

    /// The larger number of tokens of `self` and `other`, and the larger cost. This combines usage
    /// reports that arrive out of order, or that lack the tokens or the cost.
    #[must_use]
    pub fn max_each(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens.max(other.tokens),
            microdollars: self.microdollars.max(other.microdollars),
        }
    }

    /// The smaller of both numbers of tokens, and the smaller of both costs.
    #[must_use]
    pub fn min_each(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens.min(other.tokens),
            microdollars: self.microdollars.min(other.microdollars),
        }
    }

    /// The usage since `before`. A number that became smaller gives zero.
    #[must_use]
    pub fn saturating_sub(self, before: Usage) -> Usage {
        Usage {
            tokens: self.tokens.saturating_sub(before.tokens),
            microdollars: self.microdollars.saturating_sub(before.microdollars),
        }
    }
}

/// Formats usage for people: `950`, `12.3k`, `1.2M`, `$0.42`, `12.3k $0.42`, or `-` for none.
impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = (self.tokens > 0).then(|| format_count(self.tokens));
        let cost = (self.microdollars > 0).then(|| format_dollars(self.microdollars));
        let words: Vec<String> = tokens.into_iter().chain(cost).collect();
        f.pad(if words.is_empty() { "-".to_owned() } else { words.join(" ") }.as_str())
    }
}

/// Formats a count with three digits before the unit at most: `950`, `12.3k`, `1.2M`.
pub fn format_count(count: u64) -> String {
    let tenths = |unit: u64, sign: char| format!("{}.{}{sign}", count / unit, count % unit * 10 / unit);
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => tenths(1_000, 'k'),
        1_000_000..1_000_000_000 => tenths(1_000_000, 'M'),
        _ => tenths(1_000_000_000, 'G'),
    }
}

/// Formats a cost in dollars, rounded up to cents: `$3.20`.
pub fn format_dollars(microdollars: u64) -> String {
    let cents = microdollars.div_ceil(MICRODOLLARS_PER_DOLLAR / 100);
    format!("${}.{:02}", cents / 100, cents % 100)
}

/// Converts dollars to millionths of a dollar. `None` if the amount is negative or not finite.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and saturates")]
pub fn to_microdollars(dollars: f64) -> Option<u64> {
    (dollars.is_finite() && dollars >= 0.0).then(|| (dollars * MICRODOLLARS_PER_DOLLAR as f64).round() as u64)
}

/// The usage that a program reported at the end of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageReading {
    /// Tokens and cost.
    pub usage: Usage,
    /// What the numbers count: the turn or the whole session.
    pub scope: UsageScope,
}

/// The total usage that a program has reported so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageReport {
    /// The session that the total is for. `None`: the total is for the current spawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Tokens and cost since the start of the session or spawn.
    pub usage: Usage,
}

/// Where a program's output has the usage. The output consists of JSON lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UsagePaths {
    /// Paths of the token counts in a line of the output. The counts at all paths are added up. A
    /// path is a list of keys with dots between them, such as `usage.output_tokens`. `*` matches
    /// every key.
    #[serde(default)]
    pub tokens: Vec<String>,
    /// Path of the cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Path of the id of a model call, for programs that report the usage of each model call in a
    /// line of its own. The usage of all model calls is added up. If several lines have the same
    /// id, the last of them counts. `None` if the program's last line reports the whole usage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part_id: Option<String>,
    /// What the numbers count.
    #[serde(default)]
    pub scope: UsageScope,
}

/// What a program's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// The usage of one turn.
    #[default]
    Turn,
    /// The usage since the session began. Some programs count from their own start instead.
    Session,
}

impl UsageScope {
    /// The name in profiles and arguments.
    pub fn as_str(self) -> &'static str {
        match self {
            UsageScope::Turn => "turn",
            UsageScope::Session => "session",
        }
    }

    /// Parses the name in profiles and arguments.
    pub fn parse(text: &str) -> Option<UsageScope> {
        [UsageScope::Turn, UsageScope::Session].into_iter().find(|scope| scope.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(tokens: u64, microdollars: u64) -> Usage {
        Usage { tokens, microdollars }
    }

    #[test]
    fn usage_is_formatted_for_people() {
        let format = |tokens, microdollars| usage(tokens, microdollars).to_string();
        assert_eq!(format(0, 0), "-");
        assert_eq!(format(999, 0), "999");
        assert_eq!(format(1_000, 0), "1.0k");
        assert_eq!(format(999_999, 420_000), "999.9k $0.42");
        assert_eq!(format(1_250_000, 1), "1.2M $0.01");
        assert_eq!(format(0, 12_345_678), "$12.35");
        assert_eq!(format(u64::MAX, u64::MAX), "18446744073.7G $18446744073709.56");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(usage(u64::MAX, 1).saturating_add(usage(1, 1)), usage(u64::MAX, 2));
        assert_eq!(usage(10, 5).saturating_sub(usage(4, 5)), usage(6, 0));
        assert_eq!(usage(3, 7).saturating_sub(usage(4, 5)), usage(0, 2));
        assert_eq!(usage(3, 7).max_each(usage(4, 5)), usage(4, 7));
    }

    #[test]
    fn only_finite_positive_amounts_are_converted() {
        assert_eq!(to_microdollars(0.123_456_7), Some(123_457));
        assert_eq!(to_microdollars(1e300), Some(u64::MAX));
        assert_eq!([-1.0, f64::NAN, f64::INFINITY].map(to_microdollars), [None; 3]);
    }
}
