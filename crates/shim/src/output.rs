//! Lines for people on standard error.

use protocol::error::ErrorReport;
use protocol::terminal::visible;
use std::io::Write;
use std::process::ExitCode;

/// A line on standard error, with control characters made visible.
pub(crate) fn print_warning(message: &str) {
    writeln!(std::io::stderr(), "teamd-shim: {}", visible(message)).ok();
}

/// An error with its help on standard error. Returns the exit code of its kind.
pub(crate) fn print_error(error: &ErrorReport) -> ExitCode {
    print_warning(&error.message);
    if let Some(help) = &error.help {
        writeln!(std::io::stderr(), "  {}", visible(help)).ok();
    }
    ExitCode::from(error.kind.exit_code())
}
