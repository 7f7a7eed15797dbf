//! Typing into an agent's pane, for the process beside it that feeds it so.

use serde::{Deserialize, Serialize};

/// One step of it; known by the agent's token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PaneInput {
    /// What the pane shows: answered by a [`ScreenReply`].
    #[serde(rename = "look")]
    Capture,
    /// Types a text, if the cursor is still there.
    #[serde(rename = "paste")]
    Type {
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
impl std::fmt::Debug for PaneInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PaneInput::Capture => write!(f, "look"),
            PaneInput::Type { cursor, text } => write!(f, "paste {} bytes at {cursor:?}", text.len()),
            PaneInput::Enter { cursor } => write!(f, "enter at {cursor:?}"),
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
