//! The jobs of the iTerm2 thread, which runs agents in sessions of the terminal iTerm2. The core
//! sends these jobs to the panes thread, which passes them on. The iTerm2 thread reports the
//! results.

use crate::core::connection_spawn_and_watch_ids::{ConnId, SpawnId};
use protocol::control_socket::Iterm2Access;
use protocol::team_and_member_names::TeamName;
use std::path::PathBuf;

/// A session (a split pane) of iTerm2, and the program `it2` that controls it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Iterm2Session {
    pub(crate) it2: PathBuf,
    /// A UUID.
    pub(crate) id: String,
}

/// A job of the iTerm2 thread.
#[derive(Debug)]
pub(crate) enum Iterm2Job {
    /// Open a session for an agent.
    Open(Box<Iterm2Spec>),
    /// Find out whether a session still exists.
    Inspect { spawn: SpawnId, session: Iterm2Session },
    /// Close a session. A failure is only logged, because the session's program has ended.
    Close { spawn: SpawnId, session: Iterm2Session },
    /// Capture the screen of a session, or the last `lines` lines of its history and screen.
    Capture { client: ConnId, session: Iterm2Session, lines: Option<u32> },
}

/// A session that iTerm2 must open, in which a shim runs.
#[derive(Debug)]
pub(crate) struct Iterm2Spec {
    pub(crate) spawn: SpawnId,
    pub(crate) team: TeamName,
    pub(crate) access: Iterm2Access,
    /// The iTerm2 sessions of the team's other members, the latest first. iTerm2 splits the first
    /// one that still exists to make the new session. If none exists, it splits the session in
    /// which the spawn was requested.
    pub(crate) siblings: Vec<String>,
    pub(crate) title: String,
    pub(crate) argv: Vec<String>,
    /// The daemon's state directory, for the script that starts the shim.
    pub(crate) state_dir: PathBuf,
    pub(crate) log: PathBuf,
}
