//! Typing into an agent's pane, for the process beside it that feeds it so.

use serde::{Deserialize, Serialize};

/// One step of it; known by the agent's token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// A pane's screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenReply {
    /// A line each.
    pub screen: String,
    /// Column and line of the cursor, from 0.
    pub cursor: (u32, u32),
}
