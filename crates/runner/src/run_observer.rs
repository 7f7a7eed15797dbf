//! The interface through which a run reports its progress.

use crate::run_progress::RunProgress;
use protocol::error_kind_and_report::ErrorReport;

/// Receives the reports of a run. The command-line program implements this trait.
///
/// If a line may contain text from agents, the run escapes control characters before it passes the
/// line to the observer.
pub trait RunObserver {
    /// Shows one line about an event, which begins with the time.
    fn show_event(&self, line: String);

    /// Shows the state of all tasks and members. Called only while [`Self::is_live`] is true.
    fn show_progress(&self, progress: &RunProgress);

    /// Whether progress is shown on a screen that must be redrawn each second.
    fn is_live(&self) -> bool;

    /// Shows a sentence to the user. The observer adds the user's options, such as `--root`, to any
    /// `teamctl` commands in the sentence.
    fn show_warning(&self, warning: &str);

    /// Shows an error that does not end the run.
    fn show_error(&self, error: &ErrorReport);

    /// Shows what a daemon that failed to start wrote to its standard error.
    fn show_daemon_failure(&self, output: &str);
}
