//! The JSON keys whose values are names, ids, kinds, times or paths, and are not searched for
//! secrets. The values of all other keys are searched. So a new key for a text needs no change
//! here.

/// Keys whose values are names, kinds or paths.
const NAME_KEYS: [&str; 39] = [
    "answered_by",
    "assignedBy",
    "backend",
    "backendType",
    "blockedBy",
    "blocked_by",
    "blocks",
    "branch",
    "caller",
    "color",
    "cwd",
    "directory",
    "event",
    "from",
    "id",
    "inbox",
    "kind",
    "leads_team",
    "member",
    "members",
    "mode",
    "model",
    "name",
    "name_placeholder",
    "names",
    "owner",
    "pane",
    "recipient",
    "record",
    "release",
    "repository",
    "root",
    "status",
    "task",
    "team",
    "time",
    "timestamp",
    "type",
    "with",
];

/// Ends of keys whose values are ids, names, times or paths.
const NAME_KEY_ENDS: [&str; 15] = [
    "Id",
    "_id",
    "Ids",
    "_ids",
    "At",
    "_at",
    "_name",
    "Name",
    "_type",
    "Type",
    "_dir",
    "_path",
    "Path",
    "worktree",
    "worktrees",
];

/// Keys of objects whose keys agents and users choose.
const FREE_KEYS: [&str; 4] = ["input", "metadata", "updatedInput", "updated_input"];

/// Whether the value of a key of the protocol is a name, an id, a kind, a time or a path.
pub(super) fn is_name_key(key: &str) -> bool {
    NAME_KEYS.contains(&key) || NAME_KEY_ENDS.iter().any(|end| key.ends_with(end))
}

/// Whether the value of a key of the protocol has keys that an agent or a user has chosen.
pub(super) fn is_free_key(key: &str) -> bool {
    FREE_KEYS.contains(&key)
}
