//! The result of a run, for the command line to print.

use crate::run_state::{EndReason, RunEnd};
use crate::task_results::{TaskResult, completed_count};
use protocol::error::{ErrorKind, ErrorReport};
use protocol::name::TeamName;

/// The result of a run.
#[derive(Debug)]
pub struct RunReport {
    /// The exit code of `teamctl run`.
    pub exit_code: u8,
    /// One entry for each task. Empty if the team is already deleted.
    pub tasks: Vec<TaskResult>,
    /// Why the run ended before all tasks were final. `None` if all tasks are final.
    pub early_end: Option<ErrorReport>,
    /// A text for the user that says why there was nothing to do. `None` if the run did something.
    pub nothing_to_do: Option<String>,
    /// The error of shutting down the members or deleting the team, if there was one.
    pub cleanup: Result<(), ErrorReport>,
}

/// The exit code of the run: 0 if every task is completed.
pub(crate) fn exit_code(name: &TeamName, end: &RunEnd, tasks: &[TaskResult]) -> u8 {
    match early_end(name, end) {
        Some(error) => error.kind.exit_code(),
        None if completed_count(tasks) == tasks.len() => 0,
        None => ErrorKind::Partial.exit_code(),
    }
}

/// The error that says why the run ended before all tasks were final. `None` if it did not.
pub(crate) fn early_end(name: &TeamName, end: &RunEnd) -> Option<ErrorReport> {
    let (kind, reason) = match end {
        RunEnd::Over(EndReason::Finished) => return None,
        RunEnd::Suspended(error) => return Some(error.clone()),
        RunEnd::Over(EndReason::Stopped) => (ErrorKind::Partial, "it was stopped"),
        RunEnd::Over(EndReason::TimedOut) => (ErrorKind::Timeout, "its time is over"),
    };
    Some(ErrorReport::new(kind, format!("cannot run team {name} to its end: {reason}")))
}
