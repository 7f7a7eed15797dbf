//! Names of the files and directories of a team. All programs that use these files share them.

use protocol::member_task_and_request_ids::TaskId;
use protocol::team_and_member_names::MemberName;

/// Directory of the teams, in the root.
pub(crate) const TEAMS_DIR: &str = "teams";
/// Directory of the task lists, in the root.
pub(crate) const TASKS_DIR: &str = "tasks";
/// The team's config, in the team's directory.
pub(crate) const CONFIG_FILE: &str = "config.json";
/// Directory of the inboxes, in the team's directory.
pub(crate) const INBOXES_DIR: &str = "inboxes";
/// The file in a task list whose lock covers the whole list. It is always empty.
pub(crate) const LOCK_FILE: &str = ".lock";
/// The file in a task list that holds the high-water mark of its task ids.
pub(crate) const HIGH_WATER_MARK_FILE: &str = ".highwatermark";

/// The file name of a task.
pub(crate) fn task_file_name(id: TaskId) -> String {
    format!("{id}.json")
}

/// The task that a file of this name belongs to. `None` if the name is not a task's.
pub(crate) fn task_of_file(name: &str) -> Option<TaskId> {
    let id = TaskId::parse(name.strip_suffix(".json")?).ok()?;
    (task_file_name(id) == name).then_some(id)
}

/// Whether a file of this name in the inboxes directory is an inbox.
pub(crate) fn is_inbox_file(name: &str) -> bool {
    name.ends_with(".json") && !name.starts_with('.')
}

/// The owner of the inbox with this file name. `None` if teamd gives no inbox such a file name.
pub(crate) fn owner_of_inbox_file(name: &str) -> Option<MemberName> {
    let stem = name.strip_suffix(".json")?;
    let owner = MemberName::new_unchecked(stem);
    (owner.file_stem() == stem).then_some(owner)
}
