//! Records of exits, as the roster saves them and the lead gets them.

use serde::{Deserialize, Serialize};

/// The description of the exit of an agent that approved its shutdown.
pub(crate) const APPROVED: &str = "approved";

/// Describes the exit of an agent that approved its shutdown and got no signal from the daemon.
/// `description` is the description in the exit report, such as `exit 0` or `signal 9`. The result
/// is `approved` after `exit 0`, and otherwise, for example, `approved (signal 9)`.
pub(crate) fn describe_approved_exit(description: &str) -> String {
    match description {
        "exit 0" => APPROVED.to_owned(),
        other => format!("{APPROVED} ({other})"),
    }
}

/// The outcome of an exit, in the words that other programs use in the same files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExitOutcome {
    /// The agent ended by itself, or approved its shutdown.
    Completed,
    #[default]
    Failed,
    /// The agent was killed, or its pane was closed.
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

/// How and when an agent ended, and who is notified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ExitRecord {
    pub(crate) description: String,
    pub(crate) outcome: ExitOutcome,
    /// What follows the exit, as a sentence for people. `None` if nothing follows.
    pub(crate) next_step: Option<String>,
    pub(crate) ended_at: u64,
    pub(crate) report_to: ReportTo,
}

/// Who is notified of an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportTo {
    /// Nobody is notified, for example because the lead has the agent's approval of the shutdown.
    Nobody,
    /// The lead is notified, for example of a crash, a kill or a closed pane.
    Lead,
    /// The agent ended while the daemon waited for its answer to a shutdown request. The lead's
    /// inbox is read once more, because the agent may have approved the request just before it
    /// ended. Then the exit is logged. The lead is notified only if there is no approval.
    LeadUnlessApproved,
}
