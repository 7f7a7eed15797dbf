//! Requests to type into an agent's pane, for `keys` delivery.

use serde::{Deserialize, Serialize};

/// A step of `keys` delivery. The call's token identifies the agent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PaneInput {
    /// Returns the pane's screen in a [`ScreenReply`].
    #[serde(rename = "look")]
    Capture,
    /// Types text, if the cursor has not moved.
    #[serde(rename = "paste")]
    Type {
        /// Column and line of the cursor in the last [`ScreenReply`].
        cursor: (u32, u32),
        /// The text. Its control characters are removed.
        text: String,
    },
    /// Presses the Enter key, if the cursor has not moved.
    Enter {
        /// Column and line of the cursor in the last [`ScreenReply`].
        cursor: (u32, u32),
    },
}

/// The output goes to the log, so it omits the text.
impl std::fmt::Debug for PaneInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PaneInput::Capture => write!(f, "look"),
            PaneInput::Type { cursor, text } => write!(f, "paste {} bytes at {cursor:?}", text.len()),
            PaneInput::Enter { cursor } => write!(f, "enter at {cursor:?}"),
        }
    }
}

/// The screen of a pane.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScreenReply {
    /// The lines of the screen.
    pub screen: String,
    /// Column and line of the cursor, from 0.
    pub cursor: (u32, u32),
}

/// The output goes to the log, so it omits the screen.
impl std::fmt::Debug for ScreenReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a screen of {} bytes, cursor at {:?}", self.screen.len(), self.cursor)
    }
}
