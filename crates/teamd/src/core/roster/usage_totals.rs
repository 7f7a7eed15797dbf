//! The usage of a member over its spawns, by session.

use protocol::usage::{Usage, UsageReport};
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
    /// Adds a usage report, which has the total usage of a session so far. Programs and
    /// reconnecting shims repeat their reports. So only the increase since the last report of the
    /// session is added, and returned.
    ///
    /// # Errors
    ///
    /// The usage that the member would have, if that is more than `limit`. The report is not added
    /// then.
    pub(crate) fn add_report(&mut self, report: UsageReport, limit: Usage) -> Result<Usage, Usage> {
        let known = self.last_reports.iter().position(|told| told.session_id == report.session_id);
        let before = known.map(|at| self.last_reports[at].usage).unwrap_or_default();
        let used = before.max_each(report.usage);
        let new = used.saturating_sub(before);
        let total = self.usage.saturating_add(new);
        if total.max_each(limit) != limit {
            return Err(total);
        }
        if let Some(at) = known {
            self.last_reports.remove(at);
        }
        self.last_reports.push(UsageReport { usage: used, ..report });
        let over = self.last_reports.len().saturating_sub(MAX_SESSIONS);
        self.last_reports.drain(..over);
        self.usage = total;
        Ok(new)
    }
}
