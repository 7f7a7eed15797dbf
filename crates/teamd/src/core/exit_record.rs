//! The end of a life, as it is told.

use serde::{Deserialize, Serialize};

/// What other programs on these files call the end of a life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExitOutcome {
    /// By itself, or with its own yes.
    Completed,
    #[default]
    Failed,
    /// By force, or its pane was closed.
    Killed,
}

impl ExitOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ExitOutcome::Completed => "completed",
            ExitOutcome::Failed => "failed",
            ExitOutcome::Killed => "killed",
        }
    }
}

/// How and when an agent ended, and whether its lead is to hear of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitRecord {
    #[serde(rename = "how")]
    pub(crate) description: String,
    #[serde(default)]
    pub(crate) outcome: ExitOutcome,
    /// What follows, for people: that it is started again, or why not.
    #[serde(default)]
    #[serde(rename = "then")]
    pub(crate) next_step: Option<String>,
    #[serde(rename = "at")]
    pub(crate) ended_at: u64,
    #[serde(rename = "told")]
    pub(crate) report_to: ReportTo,
}

/// Who learns of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReportTo {
    /// It approved its shutdown: the lead has its word already.
    Nobody,
    /// A crash, a kill, a closed pane.
    Lead,
}
