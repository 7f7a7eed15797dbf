//! Names of the files and directories of a team, which all programs on these files share.

use protocol::id::TaskId;
use protocol::name::AgentName;

/// The directory of the teams, in the root.
pub(crate) const TEAMS_DIR: &str = "teams";
/// The directory of the task lists, in the root.
pub(crate) const TASKS_DIR: &str = "tasks";
/// The team's config, in its directory.
pub(crate) const CONFIG_FILE: &str = "config.json";
/// The directory of the inboxes, in the team's directory.
pub(crate) const INBOXES_DIR: &str = "inboxes";
/// The file in a task list that the list's lock is taken on: 0 bytes, for ever.
pub(crate) const LOCK_FILE: &str = ".lock";
/// The file in a task list that holds the highest id that deletions left behind.
pub(crate) const HIGH_WATER_MARK_FILE: &str = ".highwatermark";

/// The name of a task's file.
pub(crate) fn task_file_name(id: TaskId) -> String {
    format!("{id}.json")
}

/// The task whose file has this name.
pub(crate) fn task_of_file(name: &str) -> Option<TaskId> {
    let id = TaskId::parse(name.strip_suffix(".json")?).ok()?;
    (task_file_name(id) == name).then_some(id)
}

/// Whether a file in the directory of inboxes is an inbox.
pub(crate) fn is_inbox_file(name: &str) -> bool {
    name.ends_with(".json") && !name.starts_with('.')
}

/// The owner of the inbox whose file has this name.
pub(crate) fn owner_of_inbox_file(name: &str) -> Option<AgentName> {
    let stem = name.strip_suffix(".json")?;
    let owner = AgentName::new_unchecked(stem);
    (owner.file_stem() == stem).then_some(owner)
}
