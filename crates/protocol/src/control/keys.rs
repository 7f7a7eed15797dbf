//! Typing into an agent's pane, for the process beside it that feeds it so.

use serde::{Deserialize, Serialize};

/// One step of it; known by the agent's token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// What the pane shows: answered by a [`ScreenReply`].
    Look,
    /// Types a text, if the cursor is still there.
    Paste {
        /// Where it was seen.
        cursor: (u32, u32),
        /// Control characters are taken out of it.
        text: String,
    },
    /// The Enter key, if the cursor is still there.
    Enter {
        /// Where it was seen.
        cursor: (u32, u32),
    },
}

/// Without the text, which is nobody's business: this goes into the log.
impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Keys::Look => write!(f, "look"),
            Keys::Paste { cursor, text } => write!(f, "paste {} bytes at {cursor:?}", text.len()),
            Keys::Enter { cursor } => write!(f, "enter at {cursor:?}"),
        }
    }
}

/// A pane's screen.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScreenReply {
    /// A line each.
    pub screen: String,
    /// Column and line of the cursor, from 0.
    pub cursor: (u32, u32),
}

/// Without what a person sees there.
impl std::fmt::Debug for ScreenReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a screen of {} bytes, cursor at {:?}", self.screen.len(), self.cursor)
    }
}
