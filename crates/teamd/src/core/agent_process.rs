//! The processes of one spawn, the shim and the agent, and what follows their exit.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use protocol::control_socket::{ExitReport, Process};
use serde::{Deserialize, Serialize};

/// The shim and the agent of one spawn, and what follows their exit.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct AgentProcess {
    /// The process of the shim. `None` until it has connected once.
    pub(crate) shim: Option<Process>,
    /// The connection between the shim and the daemon. `None` while the shim is not connected, for
    /// example after a restart of the daemon.
    #[serde(skip)]
    pub(crate) conn: Option<ConnId>,
    /// The pid of the agent. `None` until the shim has reported that the agent runs.
    pub(crate) agent_pid: Option<u32>,
    /// The shim's exit report. Kept here while tmux is asked why the agent's terminal went away.
    pub(crate) exit_report: Option<ExitReport>,
    pub(crate) on_exit: OnExit,
    /// Set if the agent's plan was approved, and its program can change to the approved permission
    /// mode only when it starts. Then the agent is ended and respawned.
    pub(crate) plan_approval_respawn: Option<PlanApprovalRespawn>,
}

/// What follows the exit of an agent, however it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnExit {
    #[default]
    ApplyRestartPolicy,
    /// The member is suspended.
    Suspend,
    /// The member is not respawned: its spawn was stopped while it started.
    Deregister,
}

/// The end and respawn of an agent after its plan was approved. The permission mode of the new
/// spawn is in `RespawnRecord::approved_mode`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct PlanApprovalRespawn {
    /// The latest time at which the daemon ends the agent, in milliseconds on the monotonic clock.
    /// 0: at once.
    #[serde(skip)]
    pub(crate) deadline: u64,
}
