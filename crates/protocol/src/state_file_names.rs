//! The names of the files and directories in the state directory. Section 10 of docs/protocol.md
//! says what each contains. The names in a team's own directory are in `store::team_file_names`.

use crate::member_task_and_request_ids::TaskId;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::timestamp::iso8601;
use std::path::{Path, PathBuf};

/// The lock of the daemon, with its pid and control socket.
pub const DAEMON_LOCK: &str = "teamd.lock";
/// The daemon's record of all agents.
pub const ROSTER: &str = "roster.json";
/// The programs that lead teams from a person's terminal.
pub const LEADS: &str = "leads.json";
/// Identity of this home, and the hosts that run members of its teams.
pub const HOSTS: &str = "hosts.json";
/// The directory of the links to other hosts, one directory for each.
pub const LINKS_DIR: &str = "links";
/// The directory of the links from homes that have members here, one directory for each.
pub const HOMES_DIR: &str = "homes";
/// The event log that the daemon appends to.
pub const EVENT_LOG: &str = "events.jsonl";
/// The part of the event log before [`EVENT_LOG`].
pub const OLDER_EVENT_LOG: &str = "events.jsonl.1";
/// The directory of copies of teams whose files those of their new home have replaced.
pub const REPLACED_DIR: &str = "replaced";
/// The directory of the records of `teamctl ask`.
pub const ASKS_DIR: &str = "asks";
/// The directory of the answer logs, one for each team ([`team_log`]).
pub const ANSWERS_DIR: &str = "answers";
/// The directory of the journals, one for each team ([`team_log`]).
pub const JOURNAL_DIR: &str = "journal";
/// The directory of the files that mark tasks in work ([`task_hold`]).
pub const TASK_HOLDS_DIR: &str = "task-holds";
/// The directory of the environments of agents.
pub const ENVIRONMENTS_DIR: &str = "environments";
/// The directory of the barrier files. When the file watcher reports such a file, it has reported
/// all earlier changes of files.
pub const BARRIERS_DIR: &str = "barriers";
/// The directory of the scripts that start shims in sessions of iTerm2.
pub const ITERM2_SCRIPTS_DIR: &str = "iterm2";
/// The directory of copies of damaged files.
pub const CORRUPT_DIR: &str = "corrupt";
/// The directory of saved work of removed worktrees.
pub const TRASH_DIR: &str = "trash";
/// The directory of the records of teams ([`team_record`]).
pub const RECORDS_DIR: &str = "records";
/// The directory of all logs but the event log.
pub const LOGS_DIR: &str = "logs";

/// The policy of a team.
pub fn policy(team: &TeamName) -> String {
    format!("policy-{team}.json")
}

/// The daemon's copy of a team's config.json, from which it repairs a damaged one.
pub fn config_backup(team: &TeamName) -> String {
    format!("config-backup-{team}.json")
}

/// The file that exists if the team's home is another machine, and the files here are a mirror.
pub fn mirror_marker(team: &TeamName) -> String {
    format!("mirrored-{team}")
}

/// Which machine is the team's home. Exists if it was moved, or if the files here are a mirror.
pub fn team_home(team: &TeamName) -> String {
    format!("home-{team}.json")
}

/// The branches of a team's members on other hosts: their repositories here, and what was fetched.
pub fn branches_of_hosts(team: &TeamName) -> String {
    format!("branches-{team}.json")
}

/// The lock of [`branches_of_hosts`], which is held while this file is changed.
pub fn branches_lock(team: &TeamName) -> String {
    format!("branches-{team}.lock")
}

/// The bundle with the commits of a member's branch that is being fetched. It is locked meanwhile.
pub fn branch_bundle(team: &TeamName, member: &MemberName) -> String {
    format!("branches-{team}.{}.bundle", member.file_stem())
}

/// The team to which `file` belongs, if it is a policy, a config backup or a [`branches_of_hosts`].
pub fn team_of_removable_file(file: &str) -> Option<TeamName> {
    let prefixes = ["policy-", "config-backup-", "branches-"];
    let team = prefixes.iter().find_map(|prefix| file.strip_prefix(prefix))?;
    TeamName::parse(team.strip_suffix(".json")?).ok()
}

/// The lock of `teamctl run`, with a note of what it does.
pub fn run_lock(team: &TeamName) -> String {
    format!("run-{team}.lock")
}

/// The lock of `teamctl merge`, with a note of its worktree.
pub fn merge_lock(team: &TeamName) -> String {
    format!("merge-{team}.lock")
}

/// The team that [`merge_lock`] names, if `file` is one.
pub fn team_of_merge_lock(file: &str) -> Option<TeamName> {
    TeamName::parse(file.strip_prefix("merge-")?.strip_suffix(".lock")?).ok()
}

/// How a spawn ended. The shim writes the file before it reports the exit to the daemon.
pub fn exit_report(spawn_id: &str) -> String {
    format!("exit-{spawn_id}.json")
}

/// The team's file in [`ANSWERS_DIR`] or [`JOURNAL_DIR`].
pub fn team_log(team: &TeamName) -> String {
    format!("{team}.jsonl")
}

/// The part of a team's log before [`team_log`].
pub fn older_team_log(team: &TeamName) -> String {
    format!("{team}.jsonl.1")
}

/// The name of the file with a team's record, in [`RECORDS_DIR`]. `created_at` is the creation time
/// of the team, in milliseconds since the epoch. `number` is 1, or higher if the files with lower
/// numbers exist already.
pub fn team_record(team: &TeamName, created_at: u64, number: u32) -> String {
    let time = iso8601(created_at).replace(['-', ':'], "");
    let seconds = time.split('.').next().unwrap_or_default();
    let suffix = if number > 1 { format!("-{number}") } else { String::new() };
    format!("{team}-{seconds}Z{suffix}.jsonl")
}

/// The file in [`TASK_HOLDS_DIR`] that marks a task.
pub fn task_hold(team: &TeamName, id: &TaskId) -> String {
    format!("{team}.{id}")
}

/// The directory with the output logs of a team's agents.
pub fn agent_log_dir(state_dir: &Path, team: &TeamName) -> PathBuf {
    state_dir.join(LOGS_DIR).join("agents").join(team.as_str())
}

/// The output log of an agent. It holds the output of all spawns of the member.
pub fn agent_log_path(state_dir: &Path, team: &TeamName, name: &MemberName) -> PathBuf {
    agent_log_dir(state_dir, team).join(format!("{}.log", name.file_stem()))
}
