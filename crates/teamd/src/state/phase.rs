//! The life of an agent, from the order to the last file that is put in order.

use crate::event::ConnId;
use protocol::control::{SpawnRequest, WorktreeRequest};

/// An agent's life; each variant carries just what exists in it.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Asked for; no agent runs yet.
    Starting(Starting),
    /// Its join has, or had, its agent running.
    Running(Link),
    /// It is to end.
    Stopping(Link, Stopping),
    /// It ended; pane and files are being put in order.
    Gone(Gone),
}

impl Phase {
    /// It has ended and been told of; only its pane or its files wait to be put in order.
    pub(crate) fn is_past(&self) -> bool {
        matches!(self, Phase::Gone(gone) if gone.pane == Order::Failed || gone.files == Order::Failed)
    }

    /// The connection of its join.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match self {
            Phase::Starting(starting) => starting.conn,
            Phase::Running(link) | Phase::Stopping(link, _) => link.conn,
            Phase::Gone(_) => None,
        }
    }

    /// Not worth a line on disk: its join waits for a green light that only this daemon can give.
    pub(crate) fn is_starting_unseen(&self) -> bool {
        matches!(self, Phase::Starting(starting) if starting.stage == StartStage::Opening)
    }

    /// tmux makes its pane, or we its first process.
    pub(crate) fn has_no_process(&self) -> bool {
        matches!(self, Phase::Starting(starting) if starting.first_pid.is_none())
    }

    /// The word for `status`.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Phase::Starting(_) => "starting",
            Phase::Running(Link { conn: None }) => "unknown",
            Phase::Running(_) => "running",
            Phase::Stopping(..) => "stopping",
            Phase::Gone(_) => "gone",
        }
    }
}

/// On the way from the request to the agent.
#[derive(Debug)]
pub(crate) struct Starting {
    pub(crate) spawn: Box<SpawnRequest>,
    /// Who asked; none once they have their answer.
    pub(crate) client: Option<ConnId>,
    pub(crate) conn: Option<ConnId>,
    /// The first process's pid, once tmux told it, or whoever started it without a pane.
    pub(crate) first_pid: Option<u32>,
    pub(crate) stage: StartStage,
    /// Milliseconds on [`crate::event::Now::mono`].
    pub(crate) until: u64,
}

/// How far a start has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartStage {
    /// tmux makes the pane (or we a process), join connects: in either order.
    Opening,
    /// The files are written.
    Registering,
    /// join has the green light.
    Going,
}

/// How we reach a running agent's join.
#[derive(Debug, Default)]
pub(crate) struct Link {
    /// None after a crash of ours, until it reconnects.
    pub(crate) conn: Option<ConnId>,
}

/// On the way out.
#[derive(Debug)]
pub(crate) enum Stopping {
    /// The request is in its inbox.
    Asked(Asked),
    /// It said yes and may end by itself until then.
    Approved { until: u64 },
    /// join is ending it: TERM, then KILL; at `until` join itself is killed.
    Ending { until: u64, forced: bool },
    /// The same, for its next life.
    GoingOn { until: u64 },
}

/// A shutdown request that waits for its answer.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) reason: Option<String>,
    pub(crate) until: u64,
    pub(crate) again: u64,
    pub(crate) force: bool,
}

/// After the end.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) how: String,
    pub(crate) pane: Order,
    pub(crate) files: Order,
    /// Who wants the name next: answered once it is free, or can't be had.
    pub(crate) heirs: Vec<(ConnId, Heir)>,
}

/// What a name is wanted for.
#[derive(Debug)]
pub(crate) enum Heir {
    Spawn(Box<SpawnRequest>),
    Worktree(WorktreeRequest),
}

/// How far something is in order after an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Under way.
    Pending,
    /// tmux did not answer, or a file could not be changed; tried again at the next rescan.
    Failed,
    /// Nothing there speaks of it as living.
    Done,
}
