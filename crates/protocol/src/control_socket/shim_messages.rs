//! Messages between the daemon and a shim, the first process of every agent.
//!
//! The shim sends [`ShimHello`] together with a file descriptor: the daemon's end of the agent's
//! wake socket (SCM_RIGHTS). Then the shim waits. It starts the agent only after
//! [`ToShim::StartAgent`]. The daemon sends that message after the member is in the team files, so
//! no unregistered agent ever runs. If the daemon dies, the shim connects to the new daemon and
//! reports the agent's pid, and the new daemon adopts the agent.

use super::turn_status::{PlanStage, TurnStatus};
use crate::error_kind_and_report::ErrorReport;
use crate::member_color::Color;
use crate::permission_mode::PermissionMode;
use crate::team_and_member_names::{MemberName, TeamName};
use crate::worker_or_program_that_runs_turns::TurnProgram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Identifies a shim to the daemon. The first message of every shim.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShimHello {
    /// Id of the spawn, from the shim's command line.
    pub spawn_id: String,
    /// The agent's process id. `None` before the agent starts. If the shim itself runs the agent's
    /// turns, this is the shim's process id.
    pub agent_pid: Option<u32>,
    /// What the agent is doing, if the shim runs its turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_status: Option<TurnStatus>,
}

/// A message from the daemon to a shim.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToShim {
    /// Start the agent.
    StartAgent(Box<StartAgent>),
    /// The daemon has adopted the agent.
    Adopted,
    /// The daemon has no record of this spawn. If the agent has not started yet, the shim exits
    /// without starting it. An agent that already runs continues without supervision, because a
    /// lost roster must not end its work.
    Refused,
    /// End the agent and all its descendants: send SIGTERM, and after the grace period SIGKILL.
    End {
        /// Time between SIGTERM and SIGKILL, in milliseconds.
        grace_ms: u64,
    },
    /// Interrupt the turn. The agent keeps running. The shim replies with
    /// [`FromShim::Interrupted`].
    Interrupt,
    /// Begin no new turn until [`ToShim::ContinueTurns`]. A running turn goes on.
    HoldTurns {
        /// Since when the home of the team has no contact, in milliseconds since the epoch.
        no_contact_since: u64,
    },
    /// Begin turns again.
    ContinueTurns,
    /// The shim's exit report is stored in the roster on disk; the shim can exit.
    ExitRecorded,
}

/// What the shim starts. `Debug` omits the environment, which can contain secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct StartAgent {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Working directory, an absolute path.
    pub cwd: PathBuf,
    /// The environment, except for variables that the pane sets.
    pub env: BTreeMap<String, String>,
    /// The daemon's state directory. The shim stores its exit report there before it sends the
    /// report.
    pub state_dir: PathBuf,
    /// How to run the agent turn by turn. `None`: `argv` is one process for the whole spawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_setup: Option<Box<TurnSetup>>,
    /// The color that the shim gives to its session of iTerm2. `None` for all other backends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterm2_color: Option<Color>,
}

/// What the shim needs to run a teammate turn by turn.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TurnSetup {
    /// The program that runs in a turn.
    pub program: TurnProgram,
    /// The root: the directory with `teams/` and `tasks/`.
    pub root: PathBuf,
    /// The teammate's team.
    pub team: TeamName,
    /// The teammate's name.
    pub name: MemberName,
    /// The teammate's color.
    pub color: Option<Color>,
    /// The prompt of the first turn. When that turn starts, the inbox message with the same text is
    /// marked as read. If the prompt is empty, the first turn starts with the first message or
    /// task.
    pub prompt: String,
    /// Whether an earlier spawn of the teammate failed. If so, the new spawn continues the tasks
    /// that the earlier spawn left in progress.
    pub is_respawn: bool,
    /// Session of the earlier spawn, to be resumed. `None` starts a new session.
    pub session_id: Option<String>,
    /// The initial permission mode.
    #[serde(default)]
    pub mode: Option<PermissionMode>,
    /// The stage of plan mode. `None` if the teammate is not in plan mode.
    #[serde(default)]
    pub plan_stage: Option<PlanStage>,
    /// Texts by which a usage limit is recognized in the output of a failed turn.
    #[serde(default)]
    pub limit_patterns: Vec<String>,
}

impl std::fmt::Debug for StartAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "go {:?} in {}", self.argv.first(), self.cwd.display())
    }
}

/// A message from a shim to the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromShim {
    /// The agent was started.
    Started {
        /// The agent's process id.
        pid: u32,
    },
    /// The agent could not be started. The error names the program or directory, and the reason.
    Failed(ErrorReport),
    /// The new status of an agent whose turns the shim runs. Sent at each change.
    TurnStatus(TurnStatus),
    /// The reply to [`ToShim::Interrupt`], sent after the turn has ended.
    Interrupted {
        /// Whether a turn was running.
        was_in_turn: bool,
    },
    /// The agent and all its descendants have exited.
    Exited(ExitReport),
}

/// How an agent exited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReport {
    /// The agent exited with this code.
    Exit(i32),
    /// The agent was killed by this signal.
    Signal(i32),
    /// The agent's terminal closed. The daemon determines whether the pane was closed or the tmux
    /// server ended.
    TerminalGone,
    /// The agent's pane was closed.
    PaneClosed,
    /// The agent's tmux server ended.
    TmuxServerGone,
    /// The shim was killed, so the cause of the exit is unknown.
    ShimKilled,
    /// The machine was rebooted.
    Rebooted,
    /// The program of a turn could not be started. The text names the program and the reason.
    TurnNotStarted(String),
}

impl ExitReport {
    /// The report for a process that exited with `status`.
    pub fn from_status(status: ExitStatus) -> ExitReport {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitReport::Exit(code),
            (None, Some(signal)) => ExitReport::Signal(signal),
            (None, None) => ExitReport::ShimKilled,
        }
    }
}

impl std::fmt::Display for ExitReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExitReport::Exit(code) => write!(f, "exit {code}"),
            ExitReport::Signal(number) => write!(f, "signal {number}"),
            ExitReport::TerminalGone => f.write_str("its terminal went away"),
            ExitReport::PaneClosed => f.write_str("pane killed"),
            ExitReport::TmuxServerGone => f.write_str("tmux gone"),
            ExitReport::ShimKilled => f.write_str("lost: its first process was killed"),
            ExitReport::Rebooted => f.write_str("the machine or its container was started again"),
            ExitReport::TurnNotStarted(reason) => f.write_str(reason),
        }
    }
}
