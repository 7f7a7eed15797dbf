//! Prints messages for people on standard error.

use protocol::error_kind_and_report::ErrorReport;
use protocol::escape_control_chars::visible;
use std::io::Write;
use std::process::ExitCode;

/// Prints a line, with control characters made visible.
pub(crate) fn print_warning(message: &str) {
    writeln!(std::io::stderr(), "teamd-shim: {}", visible(message)).ok();
}

/// Prints an error with its help. Returns the exit code of its kind.
pub(crate) fn print_error(error: &ErrorReport) -> ExitCode {
    print_warning(&error.message);
    if let Some(help) = &error.help {
        writeln!(std::io::stderr(), "  {}", visible(help)).ok();
    }
    ExitCode::from(error.kind.exit_code())
}
