//! The paths of the agents' output logs.

use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::{Path, PathBuf};

/// The directory with the output logs of a team's agents, below the daemon's state directory.
pub fn agent_log_dir(state_dir: &Path, team: &TeamName) -> PathBuf {
    state_dir.join("logs/agents").join(team.as_str())
}

/// The output log of an agent. It holds the output of all spawns of the member.
pub fn agent_log_path(state_dir: &Path, team: &TeamName, name: &MemberName) -> PathBuf {
    agent_log_dir(state_dir, team).join(format!("{}.log", name.file_stem()))
}
