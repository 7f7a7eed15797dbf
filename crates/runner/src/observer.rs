//! The interface through which a run reports its progress.

use crate::progress::RunProgress;
use protocol::error::ErrorReport;

/// Receives the reports of a run. The command line implements it.
///
/// Lines that may contain text from agents have their control characters escaped already.
pub trait RunObserver {
    /// One line for each event, with its time.
    fn show_event(&self, line: String);

    /// The state of all tasks and members. Called only while [`Self::is_live`] is true.
    fn show_progress(&self, progress: &RunProgress);

    /// Whether progress is on a screen that must be redrawn each second.
    fn is_live(&self) -> bool;

    /// A sentence for the user. Commands of `teamctl` in it lack the options of this invocation.
    fn show_warning(&self, warning: &str);

    /// An error that does not end the run.
    fn show_error(&self, error: &ErrorReport);

    /// What a daemon that failed to start wrote to its standard error.
    fn show_daemon_failure(&self, output: &str);
}
