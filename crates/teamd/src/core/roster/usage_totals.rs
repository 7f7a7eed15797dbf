//! The usage of a member over its spawns, by session.

use protocol::token_and_cost_usage::{Usage, UsageReport};
use serde::{Deserialize, Serialize};

/// How many sessions of a member are counted separately. A person may switch between sessions.
const MAX_SESSIONS: usize = 8;

/// The usage of a member, and the latest report of each session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UsageTotals {
    pub(crate) usage: Usage,
    /// The largest report of each session, or of each spawn without one, the latest last.
    last_reports: Vec<UsageReport>,
}

impl UsageTotals {
    /// Adds the increase since the last report of the same session to the member's usage, and
    /// returns the increase. Each report has the total usage of its session so far. So a report
    /// that a program or a reconnecting shim repeats adds nothing.
    ///
    /// # Errors
    ///
    /// If the member's usage would exceed `limit`, returns the usage that the member would have.
    /// The report is then not added.
    pub(crate) fn add_report(&mut self, report: UsageReport, limit: Usage) -> Result<Usage, Usage> {
        let index =
            self.last_reports.iter().position(|last_report| last_report.session_id == report.session_id);
        let before = index.map(|index| self.last_reports[index].usage).unwrap_or_default();
        let session_usage = before.max_each(report.usage);
        let increase = session_usage.saturating_sub(before);
        let total = self.usage.saturating_add(increase);
        if total.max_each(limit) != limit {
            return Err(total);
        }
        if let Some(index) = index {
            self.last_reports.remove(index);
        }
        self.last_reports.push(UsageReport { usage: session_usage, ..report });
        let excess = self.last_reports.len().saturating_sub(MAX_SESSIONS);
        self.last_reports.drain(..excess);
        self.usage = total;
        Ok(increase)
    }
}
