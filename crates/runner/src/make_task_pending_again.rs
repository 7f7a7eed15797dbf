//! Makes a task pending again, as the run has decided.

use crate::decide_task_retries::{ReleaseReason, TaskRelease};
use protocol::error_kind_and_report::{ErrorKind, ErrorReport};
use protocol::task::{Task, TaskStatus};
use protocol::team_and_member_names::MemberName;
use serde_json::{Map, Value};
use store::{Error, TaskUpdate, Team};

/// Makes a task pending again, as `release` says. Returns `false`, and changes nothing, if the task
/// has changed since the run decided to release it.
pub(crate) fn release_task(team: &Team, release: &TaskRelease) -> Result<bool, ErrorReport> {
    let tasks = team.tasks();
    let is_unchanged = |task: &Task| {
        let has_failed = task.failure().is_some();
        task.status == TaskStatus::InProgress && has_failed == (release.reason == ReleaseReason::Failed)
    };
    let count_key = release.reason.metadata_key().to_owned();
    let metadata = [("failure".to_owned(), Value::Null), (count_key, Value::from(release.count))];
    let update = TaskUpdate {
        status: Some(TaskStatus::Pending),
        owner: release.owner.clone(),
        metadata: Some(Map::from_iter(metadata)),
        ..TaskUpdate::default()
    };
    match tasks.get(&release.id) {
        Ok(task) if is_unchanged(&task) => {}
        Ok(_) | Err(Error::NoSuchTask { .. }) => return Ok(false),
        Err(error) => return Err(ErrorReport::from(error)),
    }
    match tasks.update(&release.id, update, &MemberName::lead()) {
        Ok(_) => Ok(true),
        // The task is pending again, but the message to its owner could not be sent. The owner will
        // find the task without this message.
        Err(Error::OwnerNotNotified { .. }) => Ok(true),
        // The release was refused, because a member has claimed the task or because the task's
        // owner has left the team. The run decides again with the next snapshot.
        Err(error) if [ErrorKind::Refused, ErrorKind::NotFound].contains(&error.kind()) => Ok(false),
        Err(error) => Err(ErrorReport::from(error)),
    }
}
