//! The results of all checks, in the order of the checks.

use protocol::error_kind_and_report::ErrorReport;
use serde::Serialize;
use std::fmt;

/// The results of all checks so far.
#[derive(Debug, Default)]
pub(super) struct DoctorReport(Vec<Check>);

/// The result of a check. The keys are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    id: &'static str,
    severity: Severity,
    message: String,
    /// What the user can do. `None` if nothing is wrong.
    fix: Option<String>,
}

/// Whether the check passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// The check passed.
    Ok,
    /// The check found a problem that does not keep teamd from working.
    Warn,
    /// The check failed.
    Fail,
}

impl DoctorReport {
    /// Adds a check that passed.
    pub(super) fn ok(&mut self, id: &'static str, message: impl Into<String>) {
        self.0.push(Check { id, severity: Severity::Ok, message: message.into(), fix: None });
    }

    /// Adds a problem that does not keep teamd from working.
    pub(super) fn warn(&mut self, id: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { id, severity: Severity::Warn, message: message.into(), fix: Some(fix.into()) });
    }

    /// Adds a check that failed.
    pub(super) fn fail(&mut self, id: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { id, severity: Severity::Fail, message: message.into(), fix: Some(fix.into()) });
    }

    /// Adds a check that failed with this error.
    pub(super) fn fail_with_error(&mut self, id: &'static str, error: impl Into<ErrorReport>) {
        let ErrorReport { message, help, .. } = error.into();
        self.0.push(Check { id, severity: Severity::Fail, message, fix: help });
    }

    /// Changes all fixes, to add the options of this call to the commands in them.
    pub(super) fn rewrite_fixes(&mut self, rewrite: impl Fn(&str) -> String) {
        self.0.iter_mut().flat_map(|check| &mut check.fix).for_each(|fix| *fix = rewrite(fix));
    }

    /// All results.
    pub(super) fn checks(&self) -> &[Check] {
        &self.0
    }

    /// Whether a check failed.
    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|check| check.severity == Severity::Fail)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Ok => "ok",
            Severity::Warn => "warn",
            Severity::Fail => "fail",
        };
        write!(f, "{severity:<4}  {}: {}", self.id, self.message.replace('\n', " "))?;
        match &self.fix {
            Some(fix) => write!(f, "; {}", fix.replace('\n', " ")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_is_printed_as_one_line() {
        let mut report = DoctorReport::default();
        report.ok("a", "x\ny");
        report.warn("b", "x", "do y");
        assert!(!report.has_failed());
        report.fail("c", "x", "do z");
        assert!(report.has_failed());
        let lines: Vec<String> = report.checks().iter().map(ToString::to_string).collect();
        assert_eq!(lines, ["ok    a: x y", "warn  b: x; do y", "fail  c: x; do z"]);
    }
}
