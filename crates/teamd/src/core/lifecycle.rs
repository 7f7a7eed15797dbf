//! The life of an agent, from the order to the last file that is put in order.

use crate::core::id::ConnId;
use protocol::control::{SpawnRequest, WorktreeRequest};

/// What of an agent's stage is over.
pub(crate) enum ExpiredStage {
    Start,
    ShutdownAnswer { force: bool },
    Resend,
    ApprovedGrace,
    KillGrace,
    Handover,
}

/// An agent's life; each variant carries just what exists in it.
#[derive(Debug)]
pub(crate) enum Lifecycle {
    /// Asked for; no agent runs yet.
    Starting(Starting),
    /// Its join has, or had, its agent running.
    Running(ShimLink),
    /// It is to end.
    Stopping(ShimLink, Stopping),
    /// It ended; pane and files are being put in order.
    Gone(Exited),
}

impl Lifecycle {
    /// It has ended and been told of; only its pane or its files wait to be put in order.
    pub(crate) fn has_failed_cleanup(&self) -> bool {
        matches!(self, Lifecycle::Gone(gone) if gone.pane_cleanup == Cleanup::Failed || gone.file_cleanup == Cleanup::Failed)
    }

    /// The connection of its join.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self {
            Lifecycle::Starting(starting) => starting.conn,
            Lifecycle::Running(link) | Lifecycle::Stopping(link, _) => link.conn,
            Lifecycle::Gone(_) => None,
        }
    }

    /// Not worth a line on disk: its join waits for a green light that only this daemon can give.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self, Lifecycle::Starting(starting) if starting.stage == StartStage::Opening)
    }

    /// tmux makes its pane, or we its first process.
    pub(crate) fn awaits_shim(&self) -> bool {
        matches!(self, Lifecycle::Starting(starting) if starting.shim_pid.is_none())
    }

    /// The word for `status`.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Lifecycle::Starting(_) => "starting",
            Lifecycle::Running(ShimLink { conn: None }) => "unknown",
            Lifecycle::Running(_) => "running",
            Lifecycle::Stopping(..) => "stopping",
            Lifecycle::Gone(_) => "gone",
        }
    }
}

/// On the way from the request to the agent.
#[derive(Debug)]
pub(crate) struct Starting {
    pub(crate) request: Box<SpawnRequest>,
    /// Who asked; none once they have their answer.
    pub(crate) reply_to: Option<ConnId>,
    pub(crate) conn: Option<ConnId>,
    /// The first process's pid, once tmux told it, or whoever started it without a pane.
    pub(crate) shim_pid: Option<u32>,
    pub(crate) stage: StartStage,
    /// Milliseconds on `crate::event::Now::mono`.
    pub(crate) deadline: u64,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStage {
    /// tmux makes the pane (or we a process), join connects: in either order.
    Opening,
    /// The files are written.
    Registering,
    /// join has the green light.
    Launching,
}

/// How we reach a running agent's join.
#[derive(Debug, Default)]
pub(crate) struct ShimLink {
    /// None after a crash of ours, until it reconnects.
    pub(crate) conn: Option<ConnId>,
}

/// On the way out.
#[derive(Debug)]
pub(crate) enum Stopping {
    /// The request is in its inbox.
    Requested(PendingShutdown),
    /// It said yes and may end by itself until then.
    Approved { until: u64 },
    /// join is ending it: TERM, then KILL; at `until` join itself is killed.
    Terminating { until: u64, is_forced: bool },
    /// The same, for its next life.
    TerminatingForPlan { until: u64 },
}

/// A shutdown request that waits for its answer.
#[derive(Debug)]
pub(crate) struct PendingShutdown {
    pub(crate) reason: Option<String>,
    pub(crate) deadline: u64,
    pub(crate) resend_at: u64,
    pub(crate) force: bool,
}

/// After the end.
#[derive(Debug)]
pub(crate) struct Exited {
    pub(crate) description: String,
    pub(crate) pane_cleanup: Cleanup,
    pub(crate) file_cleanup: Cleanup,
    /// Who wants the name next: answered once it is free, or can't be had.
    pub(crate) name_waiters: Vec<(ConnId, NameWaiter)>,
}

/// What a name is wanted for.
#[derive(Debug)]
pub(crate) enum NameWaiter {
    Spawn(Box<SpawnRequest>),
    Worktree(WorktreeRequest),
}

/// How far something is in order after an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cleanup {
    /// Under way.
    Pending,
    /// tmux did not answer, or a file could not be changed; tried again at the next rescan.
    Failed,
    /// Nothing there speaks of it as living.
    Done,
}
