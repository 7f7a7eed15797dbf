//! The lock files that show which process runs a task: their directory and their names. They are
//! removed together with their team.

use crate::error::Error;
use crate::state_directory_handle::StateDir;
use protocol::member_task_and_request_ids::TaskId;
use protocol::state_file_names::TASK_HOLDS_DIR;
use protocol::team_and_member_names::TeamName;
use std::path::Path;

/// Deletes the lock files that show which process runs a task of this team. A process deletes its
/// own file after the task; only killed processes leave such files.
///
/// # Errors
/// `Io`; [`Error::Untrusted`] if another user owns the directory.
pub(crate) fn delete_task_holds(state_dir: &Path, team: &TeamName) -> Result<(), Error> {
    let path = state_dir.join(TASK_HOLDS_DIR);
    if !path.is_dir() {
        return Ok(());
    }
    let directory = StateDir::open(&path)?;
    let prefix = format!("{team}.");
    let is_of_team = |name: &&String| name.strip_prefix(&prefix).is_some_and(|id| TaskId::parse(id).is_ok());
    directory.names()?.iter().filter(is_of_team).try_for_each(|name| directory.remove(name))
}
