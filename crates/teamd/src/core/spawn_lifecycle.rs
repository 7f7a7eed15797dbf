//! The lifecycle of one spawn (one start of a member): from the accepted spawn request until the
//! member's name is free for another spawn.

use crate::core::agent_process::AgentProcess;
use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::exit_record::ExitRecord;
use crate::core::stop_and_exit_of_spawn::{
    Cleanup, Exited, ShutdownRequests, StopStage, Stopping, WithoutApproval,
};
use protocol::member_task_and_request_ids::RequestId;

/// The state of one spawn. Each variant carries the data that exists only in that state.
///
/// `core/roster/saved_lifecycle` saves the states for the next daemon.
#[derive(Debug, Clone)]
pub(crate) enum Lifecycle {
    /// The spawn was requested, and its shim has not reported that the agent runs.
    Starting(Starting),
    /// The agent runs, as far as the daemon knows.
    Running(AgentProcess),
    /// The agent is to end.
    Stopping(Stopping),
    /// The agent has ended, or never ran. The daemon closes its pane and deregisters the member.
    Exited(Exited),
}

impl Lifecycle {
    /// The processes of the spawn, in every state.
    pub(crate) fn process(&self) -> &AgentProcess {
        match self {
            Lifecycle::Starting(Starting { process, .. })
            | Lifecycle::Running(process)
            | Lifecycle::Stopping(Stopping { process, .. })
            | Lifecycle::Exited(Exited { process, .. }) => process,
        }
    }

    pub(crate) fn process_mut(&mut self) -> &mut AgentProcess {
        match self {
            Lifecycle::Starting(Starting { process, .. })
            | Lifecycle::Running(process)
            | Lifecycle::Stopping(Stopping { process, .. })
            | Lifecycle::Exited(Exited { process, .. }) => process,
        }
    }

    /// Moves the processes out of this state, so that the next state can have them.
    pub(crate) fn take_process(&mut self) -> AgentProcess {
        std::mem::take(self.process_mut())
    }

    /// The shutdown requests of the spawn. `None` in the states that have none.
    pub(crate) fn shutdown(&self) -> Option<&ShutdownRequests> {
        match self {
            Lifecycle::Starting(_) | Lifecycle::Running(_) => None,
            Lifecycle::Stopping(Stopping { shutdown, .. }) | Lifecycle::Exited(Exited { shutdown, .. }) => {
                Some(shutdown)
            }
        }
    }

    /// The ids of the shutdown requests, the latest last.
    pub(crate) fn shutdown_ids(&self) -> &[RequestId] {
        self.shutdown().map_or(&[], |shutdown| &shutdown.ids)
    }

    /// Moves the shutdown requests out of this state, so that the next state can have them.
    pub(crate) fn take_shutdown(&mut self) -> ShutdownRequests {
        match self {
            Lifecycle::Starting(_) | Lifecycle::Running(_) => ShutdownRequests::default(),
            Lifecycle::Stopping(Stopping { shutdown, .. }) | Lifecycle::Exited(Exited { shutdown, .. }) => {
                std::mem::take(shutdown)
            }
        }
    }

    /// How the agent ended. `None` before its exit, and for an agent that never ran.
    pub(crate) fn exit(&self) -> Option<&ExitRecord> {
        match self {
            Lifecycle::Exited(exited) => exited.exit.as_ref(),
            Lifecycle::Starting(_) | Lifecycle::Running(_) | Lifecycle::Stopping(_) => None,
        }
    }

    /// The connection of the shim. `None` while the shim is not connected, and after the exit.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        if self.is_exited() { None } else { self.process().conn }
    }

    /// Whether the pane could not be closed, or the member not be deregistered.
    pub(crate) fn has_failed_cleanup(&self) -> bool {
        matches!(self, Lifecycle::Exited(exited)
            if exited.pane_cleanup == Cleanup::Failed || exited.file_cleanup == Cleanup::Failed)
    }

    /// Whether the spawn's pane is still being opened, or its shim without a pane is still being
    /// started. The member is not registered before that. The roster leaves out a spawn in this
    /// stage, because only the daemon that opened the pane can start the agent in it.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self, Lifecycle::Starting(Starting { stage: StartStage::Opening { .. }, .. }))
    }

    /// Whether the pane is still being opened, or a shim without a pane is still being started.
    pub(crate) fn awaits_shim(&self) -> bool {
        matches!(
            self,
            Lifecycle::Starting(Starting {
                stage: StartStage::Opening { shim: ExpectedShim::NotStarted },
                ..
            })
        )
    }

    pub(crate) fn is_starting(&self) -> bool {
        matches!(self, Lifecycle::Starting(_))
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self, Lifecycle::Running(_))
    }

    /// Whether the agent runs, even if it is to end.
    pub(crate) fn has_agent(&self) -> bool {
        matches!(self, Lifecycle::Running(_) | Lifecycle::Stopping(_))
    }

    pub(crate) fn is_exited(&self) -> bool {
        matches!(self, Lifecycle::Exited(_))
    }

    /// Whether config.json must list the member.
    pub(crate) fn is_registered(&self) -> bool {
        match self {
            Lifecycle::Starting(starting) => starting.stage == StartStage::Launching,
            Lifecycle::Running(_) | Lifecycle::Stopping(_) => true,
            Lifecycle::Exited(_) => false,
        }
    }

    /// Whether the agent was asked to shut down and has not answered.
    pub(crate) fn awaits_shutdown_answer(&self) -> bool {
        matches!(self, Lifecycle::Stopping(Stopping { stage: StopStage::Requested(_), .. }))
    }

    /// When the present stage of the spawn must be over, in milliseconds on the monotonic clock.
    /// `None` for a running agent and after the agent's exit.
    pub(crate) fn stage_deadline(&self) -> Option<u64> {
        match self {
            Lifecycle::Starting(starting) => Some(starting.deadline),
            Lifecycle::Stopping(stopping) => Some(match &stopping.stage {
                StopStage::Requested(pending) => pending.deadline.min(pending.resend_at),
                StopStage::Approved { deadline } | StopStage::Terminating { deadline, .. } => *deadline,
            }),
            Lifecycle::Running(_) | Lifecycle::Exited(_) => None,
        }
    }

    /// Returns which time limit of a spawn has passed. Called only after the spawn's deadline.
    /// `mono` is the present time, in milliseconds on the monotonic clock. Returns `None` after the
    /// agent's exit.
    pub(crate) fn expired_stage(&self, mono: u64) -> Option<ExpiredStage> {
        match self {
            Lifecycle::Starting(_) => Some(ExpiredStage::Start),
            Lifecycle::Running(_) => Some(ExpiredStage::PlanApprovalRespawn),
            Lifecycle::Stopping(stopping) => Some(match &stopping.stage {
                StopStage::Requested(pending) if pending.deadline <= mono => {
                    ExpiredStage::ShutdownAnswer(pending.without_approval)
                }
                StopStage::Requested(_) => ExpiredStage::Resend,
                StopStage::Approved { .. } => ExpiredStage::ApprovedGrace,
                StopStage::Terminating { .. } => ExpiredStage::KillGrace,
            }),
            Lifecycle::Exited(_) => None,
        }
    }

    /// The state in the output of `status`.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Lifecycle::Starting(_) => "starting",
            Lifecycle::Running(AgentProcess { conn: None, .. }) => "disconnected",
            Lifecycle::Running(_) => "running",
            Lifecycle::Stopping(_) => "stopping",
            Lifecycle::Exited(_) => "exited",
        }
    }
}

/// The time limit of a spawn that has passed.
pub(crate) enum ExpiredStage {
    Start,
    ShutdownAnswer(WithoutApproval),
    Resend,
    ApprovedGrace,
    KillGrace,
    PlanApprovalRespawn,
}

/// A spawn before its shim has reported that the agent runs.
#[derive(Debug, Clone)]
pub(crate) struct Starting {
    pub(crate) process: AgentProcess,
    /// The client that gets the reply. `None` for a respawn, and once the client has its reply.
    pub(crate) reply_to: Option<ConnId>,
    pub(crate) stage: StartStage,
    /// When the present stage of the start must be over, in milliseconds on the monotonic clock.
    pub(crate) deadline: u64,
}

/// Which process must connect as the shim of a spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedShim {
    /// No process was started yet, or its pid is not known yet.
    NotStarted,
    /// The process with this pid.
    Pid(u32),
    /// Any process may connect as the shim if it knows the id of the spawn. Used in iTerm2, which
    /// does not tell the pid of the process that it starts.
    AnyPid,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStage {
    /// The pane is being opened, or the shim is being started without a pane. `shim` says which
    /// process must connect as the shim. The shim may connect before the daemon knows that process.
    Opening { shim: ExpectedShim },
    /// The files thread registers the member.
    Registering,
    /// The shim was told to start the agent.
    Launching,
}
