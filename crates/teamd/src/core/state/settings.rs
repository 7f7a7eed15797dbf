//! Paths and settings of the daemon, and the state of its file watcher.

use protocol::name::{AgentName, TeamName};
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
        }
    }

    /// The path of `teamctl` as an argument.
    pub(crate) fn teamctl_path(&self) -> String {
        self.teamctl_program.to_string_lossy().into_owned()
    }

    /// The log of an agent's output.
    pub(crate) fn output_log(&self, team: &TeamName, name: &AgentName) -> PathBuf {
        store::agent_log_path(&self.state_dir, team, name)
    }
}

/// Whether the watcher delivers file events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatcherState {
    /// The watcher has not reported the probe file yet. Until it does, frequent rescans replace
    /// file events.
    Unproven,
    /// A directory can't be watched. Frequent rescans replace file events, and the next rescan
    /// tries to watch the directory again.
    Failed,
    /// File events arrive. Rescans are rare, and find changes for which no event came.
    Active,
}

impl WatcherState {
    /// The time between two rescans, in milliseconds.
    pub(crate) fn rescan_interval_ms(self) -> u64 {
        match self {
            WatcherState::Unproven | WatcherState::Failed => 2_000,
            WatcherState::Active => 30_000,
        }
    }

    /// The word for this state in `status`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            WatcherState::Unproven | WatcherState::Failed => "rescan",
            WatcherState::Active => "events",
        }
    }
}
