//! How messages reach an agent, and when.

use serde::{Deserialize, Serialize};

/// How messages reach an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Delivery {
    /// The program reads and writes the team files itself. Only Claude Code does this, if it is
    /// started with the flags that name its team and itself.
    Native,
    /// The program's turn-end hook waits for messages and returns them as the hook's output.
    Hook,
    /// The shim runs one long-lived driver process that speaks the Agent Client Protocol.
    Acp,
    /// The shim runs one process for each turn.
    Turn,
    /// The agent asks for its messages. A byte on its wake socket says that there may be new ones.
    #[default]
    Pull,
}

impl Delivery {
    /// All kinds of delivery.
    pub const ALL: [Delivery; 5] =
        [Delivery::Native, Delivery::Hook, Delivery::Acp, Delivery::Turn, Delivery::Pull];

    /// The name in profiles and in `teamctl status`.
    pub fn as_str(self) -> &'static str {
        match self {
            Delivery::Native => "native",
            Delivery::Hook => "hook",
            Delivery::Acp => "acp",
            Delivery::Turn => "turn",
            Delivery::Pull => "pull",
        }
    }

    /// At which moment a stored message reaches the agent.
    pub fn delivery_point(self) -> DeliveryPoint {
        match self {
            Delivery::Native => DeliveryPoint::MidTurn,
            Delivery::Hook | Delivery::Acp | Delivery::Turn => DeliveryPoint::TurnEnd,
            Delivery::Pull => DeliveryPoint::OnPull,
        }
    }
}

/// At which moment a stored message reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum DeliveryPoint {
    /// At any time, also during a turn.
    MidTurn,
    /// At the end of a turn, or at once if the agent is idle.
    TurnEnd,
    /// When the agent asks for its messages.
    OnPull,
}

impl DeliveryPoint {
    /// The name in `teamctl status`.
    pub fn as_str(self) -> &'static str {
        match self {
            DeliveryPoint::MidTurn => "mid-turn",
            DeliveryPoint::TurnEnd => "turn-end",
            DeliveryPoint::OnPull => "on-pull",
        }
    }

    /// What a sender can expect, as a text for people.
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
    fn names_equal_those_in_json() {
        for delivery in Delivery::ALL {
            assert_eq!(serde_json::to_value(delivery).unwrap(), delivery.as_str());
            let point = delivery.delivery_point();
            assert_eq!(serde_json::to_value(point).unwrap(), point.as_str());
        }
    }
}
