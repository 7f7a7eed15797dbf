//! The findings, in the order in which they were made: fine, worth knowing, or broken.

use protocol::error::ErrorReport;
use serde::Serialize;
use std::fmt;

/// All findings.
#[derive(Debug, Default)]
pub(super) struct DoctorReport(Vec<Check>);

/// One finding; the keys are those of `--json`.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    id: &'static str,
    severity: Severity,
    message: String,
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    Ok,
    Warn,
    Fail,
}

impl DoctorReport {
    /// It is as it should be.
    pub(super) fn ok(&mut self, id: &'static str, message: impl Into<String>) {
        self.0.push(Check { id, severity: Severity::Ok, message: message.into(), fix: None });
    }

    /// It works, but somebody should know.
    pub(super) fn warn(&mut self, id: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { id, severity: Severity::Warn, message: message.into(), fix: Some(fix.into()) });
    }

    /// It does not work.
    pub(super) fn fail(&mut self, id: &'static str, message: impl Into<String>, fix: impl Into<String>) {
        self.0.push(Check { id, severity: Severity::Fail, message: message.into(), fix: Some(fix.into()) });
    }

    /// It does not work, as the fault says.
    pub(super) fn fail_with_error(&mut self, id: &'static str, fault: &ErrorReport) {
        let check =
            Check { id, severity: Severity::Fail, message: fault.message.clone(), fix: fault.help.clone() };
        self.0.push(check);
    }

    /// Whoever found something did not know what was typed here.
    pub(super) fn rewrite_commands(&mut self, placed: impl Fn(&str) -> String) {
        self.0.iter_mut().flat_map(|check| &mut check.fix).for_each(|fix| *fix = placed(fix));
    }

    /// All that was found.
    pub(super) fn checks(&self) -> &[Check] {
        &self.0
    }

    /// Whether anything is broken.
    pub(super) fn has_failed(&self) -> bool {
        self.0.iter().any(|check| check.severity == Severity::Fail)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Ok => "ok",
            Severity::Warn => "warn",
            Severity::Fail => "fail",
        };
        write!(f, "{word:<4}  {}: {}", self.id, self.message.replace('\n', " "))?;
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
    fn a_check_is_one_line_and_a_failure_is_remembered() {
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
