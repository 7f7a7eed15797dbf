//! The result of a run, for the command line to print.

use crate::task_results::TaskResult;
use protocol::error::ErrorReport;

/// The result of a run.
#[derive(Debug)]
pub struct RunReport {
    /// The exit code of the command.
    pub exit_code: u8,
    /// One entry for each task. Empty if the team is already deleted.
    pub tasks: Vec<TaskResult>,
    /// Why the run ended before its tasks were final. `None`: they are final.
    pub early_end: Option<ErrorReport>,
    /// Says why there was nothing to do, for the user. `None`: the run did its work.
    pub nothing_to_do: Option<String>,
    /// The error of the members' shutdown or of the team's deletion.
    pub cleanup: Result<(), ErrorReport>,
}
