//! The settings of the daemon, and the paths of its files and programs.

use protocol::state_file_names::agent_log_path;
use protocol::team_and_member_names::{MemberName, TeamName};
use std::path::PathBuf;

/// Settings that stay the same while the daemon runs.
#[derive(Debug, Clone)]
pub(crate) struct DaemonSettings {
    pub(crate) root: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) tmux_socket: Option<PathBuf>,
    /// The program `teamd-shim`.
    pub(crate) shim_program: PathBuf,
    /// The program `teamctl` of the same installation.
    pub(crate) teamctl_program: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) pid: u32,
    /// How long a turn may go on without output before people are notified, in milliseconds.
    /// `None`: people are never notified.
    pub(crate) no_output_after_ms: Option<u64>,
    /// How long members may begin new turns without contact with the home of their team, in
    /// milliseconds. `None`: without limit.
    pub(crate) lease_ms: Option<u64>,
}

impl DaemonSettings {
    #[cfg(test)]
    pub(crate) fn for_tests() -> DaemonSettings {
        DaemonSettings {
            root: "/root".into(),
            socket: "/run/control.sock".into(),
            tmux_socket: Some("/tmp/tmux".into()),
            shim_program: "/bin/teamd-shim".into(),
            teamctl_program: "/bin/teamctl".into(),
            state_dir: "/state".into(),
            pid: 1,
            no_output_after_ms: Some(600_000),
            lease_ms: Some(60_000),
        }
    }

    /// The path of `teamctl` as an argument.
    pub(crate) fn teamctl_path(&self) -> String {
        self.teamctl_program.to_string_lossy().into_owned()
    }

    /// The log of an agent's output.
    pub(crate) fn output_log(&self, team: &TeamName, name: &MemberName) -> PathBuf {
        agent_log_path(&self.state_dir, team, name)
    }
}
