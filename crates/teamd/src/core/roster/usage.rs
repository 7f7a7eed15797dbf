//! The usage of a member over its spawns, by session.

use protocol::usage::{Usage, UsageReport};
use serde::{Deserialize, Serialize};

/// As many sessions of a member are told apart; a person goes from one to the other and back.
const MAX_SESSIONS: usize = 8;

/// What a member has used up, and up to where its program's reports are in that.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct UsageTotals {
    #[serde(rename = "used")]
    pub(crate) usage: Usage,
    /// The most that each of the last sessions, or lives, has told, the latest last.
    #[serde(rename = "told")]
    last_reports: Vec<UsageReport>,
}

impl UsageTotals {
    /// Takes in what is new in the report, and gives that: programs tell the same again, and so do joins that come back.
    pub(crate) fn add_report(&mut self, report: UsageReport) -> Usage {
        let known = self.last_reports.iter().position(|told| told.session_id == report.session_id);
        let before = known.map(|at| self.last_reports.remove(at).usage).unwrap_or_default();
        let used = before.max_each(report.usage);
        self.last_reports.push(UsageReport { usage: used, ..report });
        let over = self.last_reports.len().saturating_sub(MAX_SESSIONS);
        self.last_reports.drain(..over);
        let new = used.saturating_sub(before);
        self.usage = self.usage.saturating_add(new);
        new
    }
}
