//! What a run came to.

use crate::task_results::TaskResult;
use protocol::error::ErrorReport;

/// What a run came to.
#[derive(Debug)]
pub struct RunReport {
    /// The exit code of the command.
    pub exit_code: u8,
    /// One entry for each task. Empty if the team's files are gone already.
    pub tasks: Vec<TaskResult>,
    /// Why the run ended before its tasks were final.
    pub early_end: Option<ErrorReport>,
    /// A sentence for the user: why nothing was left to do. None: the run did its work.
    pub nothing_to_do: Option<String>,
    /// What failed after the tasks: the shutdown of the members, or the deletion of the team.
    pub cleanup: Result<(), ErrorReport>,
}
