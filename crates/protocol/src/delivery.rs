//! How an agent gets its messages, and what can be promised of that.

use serde::{Deserialize, Serialize};

/// How an agent gets its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// It speaks the files' protocol itself: Claude Code with its identity flags.
    Native,
    /// Its turn-end hook waits for mail, and hands it over as the hook's answer.
    Hook,
    /// One long-lived process that speaks the Agent Client Protocol, driven by join.
    Acp,
    /// One process a turn, run by join.
    Turn,
    /// It looks by itself, woken through its wake line.
    #[default]
    Pull,
    /// Text is typed into its pane.
    Keys,
}

impl Delivery {
    /// All there are.
    pub const ALL: [Delivery; 6] =
        [Delivery::Native, Delivery::Hook, Delivery::Acp, Delivery::Turn, Delivery::Pull, Delivery::Keys];

    /// The word in a profile and in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Delivery::Native => "native",
            Delivery::Hook => "hook",
            Delivery::Acp => "acp",
            Delivery::Turn => "turn",
            Delivery::Pull => "pull",
            Delivery::Keys => "keys",
        }
    }

    /// Its hooks, or a process beside it that stands for them, tell of its turns and wait for its mail.
    pub fn has_hooks(self) -> bool {
        matches!(self, Delivery::Hook | Delivery::Keys)
    }

    /// When a message that is stored reaches the agent.
    pub fn delivery_point(self) -> DeliveryPoint {
        match self {
            Delivery::Native => DeliveryPoint::MidTurn,
            Delivery::Hook | Delivery::Acp | Delivery::Turn | Delivery::Keys => DeliveryPoint::TurnEnd,
            Delivery::Pull => DeliveryPoint::OnPull,
        }
    }
}

/// When a stored message reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryPoint {
    /// Also in the middle of a turn.
    MidTurn,
    /// When its turn has ended, at once if it is idle.
    TurnEnd,
    /// Only when it looks.
    #[serde(rename = "when-asked")]
    OnPull,
}

impl DeliveryPoint {
    /// The word in `status`.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryPoint::MidTurn => "mid-turn",
            DeliveryPoint::TurnEnd => "turn-end",
            DeliveryPoint::OnPull => "when-asked",
        }
    }

    /// What a sender may expect, for people.
    pub fn description(self) -> &'static str {
        match self {
            DeliveryPoint::MidTurn => "messages reach it in the middle of a turn",
            DeliveryPoint::TurnEnd => "messages reach it at the end of its turn, at once while it is idle",
            DeliveryPoint::OnPull => "messages reach it when it looks",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_is_written() {
        for feed in Delivery::ALL {
            assert_eq!(serde_json::to_value(feed).unwrap(), feed.as_str());
            let reaches = feed.delivery_point();
            assert_eq!(serde_json::to_value(reaches).unwrap(), reaches.as_str());
        }
    }
}
