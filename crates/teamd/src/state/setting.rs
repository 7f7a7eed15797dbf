//! Where the daemon lives, and how it hears of files.

use protocol::name::{AgentName, TeamName};
use std::path::PathBuf;

/// What does not change while the daemon runs.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) root: PathBuf,
    pub(crate) socket: PathBuf,
    pub(crate) tmux_socket: Option<PathBuf>,
    /// The program that is the first process of every pane.
    pub(crate) pane_program: PathBuf,
    /// Everything of ours that outlives the daemon.
    pub(crate) state: PathBuf,
    pub(crate) pid: u32,
    /// A turn that writes nothing for so long is told, ms; none: never.
    pub(crate) stuck_after: Option<u64>,
}

impl Setting {
    /// That of a daemon without a machine.
    #[cfg(test)]
    pub(crate) fn made_up() -> Setting {
        Setting {
            root: "/root".into(),
            socket: "/run/control.sock".into(),
            tmux_socket: Some("/tmp/tmux".into()),
            pane_program: "/bin/teamd-pane".into(),
            state: "/state".into(),
            pid: 1,
            stuck_after: Some(600_000),
        }
    }

    /// The command line of the same release.
    pub(crate) fn teamctl(&self) -> String {
        self.pane_program.with_file_name("teamctl").to_string_lossy().into_owned()
    }

    /// Where an agent's output goes.
    pub(crate) fn log_of(&self, team: &TeamName, name: &AgentName) -> PathBuf {
        self.state.join("logs").join("agents").join(team.as_str()).join(format!("{name}.log"))
    }
}

/// How changes of files come to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watch {
    /// Nobody has told of our probe: by looking, until somebody does.
    Rescan,
    /// Something can't be watched: by looking, and a probe that is told says nothing. The next look tries again.
    Blind,
    /// By events; a look now and then is the net behind them.
    Events,
}

impl Watch {
    /// Between two looks at all files, ms.
    pub(crate) fn rescan_every(self) -> u64 {
        match self {
            Watch::Rescan | Watch::Blind => 2_000,
            Watch::Events => 30_000,
        }
    }

    /// For `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Watch::Rescan | Watch::Blind => "rescan",
            Watch::Events => "events",
        }
    }
}
