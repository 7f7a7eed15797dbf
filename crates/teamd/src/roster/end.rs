//! The end of a life, as it is told.

use serde::{Deserialize, Serialize};

/// What other programs on these files call the end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// By itself, or with its own yes.
    Completed,
    #[default]
    Failed,
    /// By force, or its pane was closed.
    Killed,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Killed => "killed",
        }
    }
}

/// How and when an agent ended, and whether its lead is to hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) how: String,
    #[serde(default)]
    pub(crate) outcome: Outcome,
    /// What follows, for people: that it is started again, or why not.
    #[serde(default)]
    pub(crate) then: Option<String>,
    pub(crate) at: u64,
    pub(crate) told: Told,
}

/// Who learns of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Told {
    /// It approved its shutdown: the lead has its word already.
    Nobody,
    /// A crash, a kill, a closed pane.
    Lead,
}
