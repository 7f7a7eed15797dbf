//! Where the daemon lives, and how it hears of files.

use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;

/// What does not change while the daemon runs.
#[derive(Debug, Clone)]
pub(crate) struct DaemonSettings {
    pub(crate) root: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) tmux_socket: Option<PathBuf>,
    /// The program that is the first process of every pane.
    pub(crate) shim_program: PathBuf,
    /// The command line of the same installation.
    pub(crate) teamctl_program: PathBuf,
    /// Everything of ours that outlives the daemon.
    pub(crate) state_dir: PathBuf,
    pub(crate) pid: u32,
    /// A turn that writes nothing for so long is told, ms; none: never.
    pub(crate) no_output_after_ms: Option<u64>,
}

impl DaemonSettings {
    /// That of a daemon without a machine.
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

    /// [`DaemonSettings::teamctl_program`] as a word of a command line.
    pub(crate) fn teamctl_path(&self) -> String {
        self.teamctl_program.to_string_lossy().into_owned()
    }

    /// Where an agent's output goes.
    pub(crate) fn output_log(&self, team: &TeamName, name: &AgentName) -> PathBuf {
        self.state_dir.join("logs").join("agents").join(team.as_str()).join(format!("{name}.log"))
    }
}

/// How changes of files come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatcherState {
    /// Nobody has told of our probe: by looking, until somebody does.
    Unproven,
    /// Something can't be watched: by looking, and a probe that is told says nothing. The next look tries again.
    Failed,
    /// By events; a look now and then is the net behind them.
    Active,
}

impl WatcherState {
    /// Between two looks at all files, ms.
    pub(crate) fn rescan_interval_ms(self) -> u64 {
        match self {
            WatcherState::Unproven | WatcherState::Failed => 2_000,
            WatcherState::Active => 30_000,
        }
    }

    /// For `status`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            WatcherState::Unproven | WatcherState::Failed => "rescan",
            WatcherState::Active => "events",
        }
    }
}
