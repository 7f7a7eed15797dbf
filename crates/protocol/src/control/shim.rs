//! The conversation between the daemon and the first process of a pane.
//!
//! join says hello (with the far end of the agent's wake line, by SCM_RIGHTS) and waits. Only `ToShim::StartAgent`
//! lets the agent start, and the daemon sends it after the member stands in the files: so no agent ever runs
//! unregistered. After a daemon's death join says hello again, with its agent's pid, and is adopted.

use super::turn_status::{PlanStage, TurnStatus};
use crate::color::Color;
use crate::name::{AgentName, TeamName};
use crate::permission_mode::PermissionMode;
use crate::turn_program::TurnProgram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Who is in the pane.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShimHello {
    /// The id that the daemon gave it on its command line.
    #[serde(rename = "spawn")]
    pub spawn_id: String,
    /// Its agent's process, once that runs; of an agent that is run a turn at a time, join itself.
    #[serde(rename = "agent")]
    pub agent_pid: Option<u32>,
    /// What that agent does, where join runs its turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "turn")]
    pub turn_status: Option<TurnStatus>,
}

/// What the daemon tells it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToShim {
    /// Start the agent.
    #[serde(rename = "go")]
    StartAgent(Box<StartAgent>),
    /// You are known, go on.
    Adopted,
    /// Nobody knows you: end without starting anything. An agent that runs already runs on, unsupervised: a
    /// roster that was lost is no reason to end its work.
    Refused,
    /// End the agent and all its descendants: TERM, then after the grace KILL.
    End {
        /// Between TERM and KILL.
        grace_ms: u64,
    },
    /// End the turn, not the agent; answered by `FromShim::Interrupted`.
    Interrupt,
    /// Your report is in the roster on the disk; go.
    #[serde(rename = "noted")]
    ExitRecorded,
}

/// What to start. `Debug` leaves out the environment, which may hold secrets.
#[derive(Clone, Serialize, Deserialize)]
pub struct StartAgent {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Absolute.
    pub cwd: PathBuf,
    /// The whole environment, but for what the pane itself gives.
    pub env: BTreeMap<String, String>,
    /// The daemon's state directory: where join leaves word of its agent's end, before it tells.
    #[serde(rename = "state")]
    pub state_dir: PathBuf,
    /// Run it a turn at a time; none: `argv` is the agent for its whole life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "turns")]
    pub setup: Option<Box<TurnSetup>>,
    /// Program and arguments of a process that runs beside the agent for its whole life, unseen: what feeds it by keys.
    /// Empty for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "beside")]
    pub companion: Vec<String>,
}

/// What join needs to live a teammate's life.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TurnSetup {
    /// What a turn runs.
    pub program: TurnProgram,
    /// The directory that holds teams and tasks.
    pub root: PathBuf,
    /// Its team.
    pub team: TeamName,
    /// Its name.
    pub name: AgentName,
    /// Its colour.
    pub color: Option<Color>,
    /// What the first turn is about, as it stands; empty: the first item that comes. It is also the first
    /// message in the inbox, which that turn marks read.
    pub prompt: String,
    /// The life before this one failed: tasks that it left in progress are taken up again.
    #[serde(rename = "again")]
    pub is_respawn: bool,
    /// The program's session in that life, to be resumed.
    #[serde(rename = "session")]
    pub session_id: Option<String>,
    /// The permission mode that it begins in.
    #[serde(default)]
    pub mode: Option<PermissionMode>,
    /// It plans first, or still; none: it may carry out what it is told.
    #[serde(default)]
    #[serde(rename = "plan")]
    pub plan_stage: Option<PlanStage>,
}

impl std::fmt::Debug for StartAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "go {:?} in {}", self.argv.first(), self.cwd.display())
    }
}

/// What it tells the daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromShim {
    /// The agent runs.
    Started {
        /// Its process.
        pid: u32,
    },
    /// The agent could not be started.
    Failed {
        /// Program or directory, and why.
        message: String,
    },
    /// What an agent does whose turns join runs, each time that it changes.
    #[serde(rename = "turn")]
    TurnStatus(TurnStatus),
    /// The answer to `ToShim::Interrupt`, after the turn has ended.
    Interrupted {
        /// There was a turn to end.
        #[serde(rename = "turn")]
        was_in_turn: bool,
    },
    /// The agent has ended and nothing of it is left.
    #[serde(rename = "ended")]
    Exited(ExitReport),
}

/// How an agent ended, told apart by cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitReport {
    /// It exited with this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
    /// Its terminal went away; whether the pane was killed or tmux ended, the daemon finds out.
    #[serde(rename = "hangup")]
    TerminalGone,
    /// Its pane was closed by somebody.
    #[serde(rename = "pane_killed")]
    PaneClosed,
    /// Its tmux server is gone.
    #[serde(rename = "tmux_gone")]
    TmuxServerGone,
    /// Its first process was killed, so nobody knows more.
    #[serde(rename = "lost")]
    ShimKilled,
    /// The machine was started again.
    Rebooted,
    /// A turn's program could not be started; the text names it and says why.
    #[serde(rename = "not_started")]
    TurnNotStarted(String),
}

impl ExitReport {
    /// How a process ended that its parent has waited for.
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
            ExitReport::Rebooted => f.write_str("the machine was started again"),
            ExitReport::TurnNotStarted(why) => f.write_str(why),
        }
    }
}
