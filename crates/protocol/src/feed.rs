//! How an agent gets its messages, and what can be promised of that.

use serde::{Deserialize, Serialize};

/// How an agent gets its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Feed {
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

impl Feed {
    /// All there are.
    pub const ALL: [Feed; 6] = [Feed::Native, Feed::Hook, Feed::Acp, Feed::Turn, Feed::Pull, Feed::Keys];

    /// The word in a profile and in `status`.
    pub fn word(self) -> &'static str {
        match self {
            Feed::Native => "native",
            Feed::Hook => "hook",
            Feed::Acp => "acp",
            Feed::Turn => "turn",
            Feed::Pull => "pull",
            Feed::Keys => "keys",
        }
    }

    /// Its hooks, or a process beside it that stands for them, tell of its turns and wait for its mail.
    pub fn is_hooked(self) -> bool {
        matches!(self, Feed::Hook | Feed::Keys)
    }

    /// When a message that is stored reaches the agent.
    pub fn reaches(self) -> Reaches {
        match self {
            Feed::Native => Reaches::MidTurn,
            Feed::Hook | Feed::Acp | Feed::Turn | Feed::Keys => Reaches::TurnEnd,
            Feed::Pull => Reaches::WhenAsked,
        }
    }
}

/// When a stored message reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reaches {
    /// Also in the middle of a turn.
    MidTurn,
    /// When its turn has ended, at once if it is idle.
    TurnEnd,
    /// Only when it looks.
    WhenAsked,
}

impl Reaches {
    /// The word in `status`.
    pub fn word(self) -> &'static str {
        match self {
            Reaches::MidTurn => "mid-turn",
            Reaches::TurnEnd => "turn-end",
            Reaches::WhenAsked => "when-asked",
        }
    }

    /// What a sender may expect, for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Reaches::MidTurn => "messages reach it in the middle of a turn",
            Reaches::TurnEnd => "messages reach it at the end of its turn, at once while it is idle",
            Reaches::WhenAsked => "messages reach it when it looks",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_what_is_written() {
        for feed in Feed::ALL {
            assert_eq!(serde_json::to_value(feed).unwrap(), feed.word());
            let reaches = feed.reaches();
            assert_eq!(serde_json::to_value(reaches).unwrap(), reaches.word());
        }
    }
}
