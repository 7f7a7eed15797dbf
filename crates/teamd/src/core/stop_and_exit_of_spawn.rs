//! The last stages of a spawn: its shutdown requests, how it is stopped, and its end.

use crate::core::agent_process::AgentProcess;
use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::exit_record::ExitRecord;
use protocol::control_socket::{SpawnRequest, WorktreeRequest};
use protocol::member_task_and_request_ids::RequestId;
use serde::{Deserialize, Serialize};

/// An agent that is to end.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    pub(crate) process: AgentProcess,
    pub(crate) shutdown: ShutdownRequests,
    pub(crate) stage: StopStage,
}

/// The shutdown requests of one spawn.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct ShutdownRequests {
    /// The ids of the shutdown requests that were sent to the agent, the latest last. A request
    /// without an answer is sent again under a new id.
    pub(crate) ids: Vec<RequestId>,
}

/// Whether an agent has approved its shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ShutdownApproval {
    #[default]
    NotGiven,
    Given,
}

/// How far the end of an agent has come.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopStage {
    /// The shutdown request is in the agent's inbox.
    Requested(PendingShutdown),
    /// The agent approved, and may end by itself until the deadline.
    Approved {
        #[serde(skip)]
        deadline: u64,
    },
    /// The shim ends the agent by SIGTERM, then by SIGKILL. At `deadline`, in milliseconds on the
    /// monotonic clock, the daemon kills the shim.
    Terminating {
        cause: StopCause,
        #[serde(skip)]
        deadline: u64,
    },
}

/// Why an agent is terminated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopCause {
    /// The agent approved its shutdown and did not end by itself.
    Approved,
    Forced,
    /// The agent's plan was approved, and the member is respawned in another permission mode.
    PlanApprovalRespawn,
}

/// A shutdown request that waits for its answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct PendingShutdown {
    pub(crate) reason: Option<String>,
    #[serde(skip)]
    pub(crate) deadline: u64,
    #[serde(skip)]
    pub(crate) resend_at: u64,
    pub(crate) without_approval: WithoutApproval,
}

/// What becomes of an agent that does not approve its shutdown in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WithoutApproval {
    KeepRunning,
    Terminate,
}

/// A spawn after its end.
#[derive(Debug, Clone)]
pub(crate) struct Exited {
    /// The processes as they were last known.
    pub(crate) process: AgentProcess,
    pub(crate) shutdown: ShutdownRequests,
    /// How the agent ended. `None` if it never ran.
    pub(crate) exit: Option<ExitRecord>,
    /// How the spawn ended, for the clients that wait for that.
    pub(crate) description: String,
    pub(crate) pane_cleanup: Cleanup,
    pub(crate) file_cleanup: Cleanup,
    /// The clients that wait for the member's name. They get an answer when the cleanup is done or
    /// has failed.
    pub(crate) name_waiters: Vec<NameWaiter>,
}

impl Exited {
    /// A spawn that has just ended, before both steps of its cleanup.
    pub(crate) fn new(process: AgentProcess, shutdown: ShutdownRequests, exit: Option<ExitRecord>) -> Exited {
        let description = exit.as_ref().map_or("not spawned", |exit| &exit.description).to_owned();
        Exited {
            process: AgentProcess { conn: None, ..process },
            shutdown,
            exit,
            description,
            pane_cleanup: Cleanup::Pending,
            file_cleanup: Cleanup::Pending,
            name_waiters: Vec::new(),
        }
    }
}

/// A client whose call waits for a name.
#[derive(Debug, Clone)]
pub(crate) struct NameWaiter {
    pub(crate) client: ConnId,
    pub(crate) call: NameCall,
}

/// A call that needs a name.
#[derive(Debug, Clone)]
pub(crate) enum NameCall {
    Spawn(Box<SpawnRequest>),
    Worktree(WorktreeRequest),
}

/// How far one part of the cleanup after an exit has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleanup {
    Pending,
    /// tmux did not answer, or a file could not be changed. The next rescan tries again.
    Failed,
    Done,
}
