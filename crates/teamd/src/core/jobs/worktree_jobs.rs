//! The jobs for git and their results.

use crate::core::id::ConnId;
use crate::core::roster::MemberWorktree;
use protocol::control::{DeleteTeamRequest, RemovedWorktrees};
use protocol::error::ErrorReport;
use protocol::name::{AgentName, TeamName};
use std::collections::BTreeSet;
use std::path::PathBuf;
use worktree::{GitEnvironment, WorktreeOptions, WorktreeProposal};

/// A worktree that is being created.
#[derive(Debug, Clone)]
pub(crate) struct WorktreeCreation {
    pub(crate) client: ConnId,
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    pub(crate) proposal: WorktreeProposal,
    pub(crate) environment: GitEnvironment,
}

/// A git job.
#[derive(Debug)]
pub(crate) enum WorktreeJob {
    /// Choose path and branch of a worktree, and create its empty directory.
    Propose {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        wanted: WorktreeOptions,
        environment: GitEnvironment,
    },
    /// Let git fill a worktree. The saved roster names it.
    Fill(Box<WorktreeCreation>),
    /// Check whether unsaved work in `worktrees` would prevent their removal, without changing
    /// anything. Processes below the shims `shim_pids` do not count as users of a worktree, because
    /// they end with the members.
    CheckUnsaved {
        client: Option<ConnId>,
        order: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        shim_pids: BTreeSet<u32>,
    },
    /// Remove all worktrees of a team. If a worktree has unsaved work and the deletion request does
    /// not name that worktree, none is removed. Unsaved work in a named worktree is moved below the
    /// directory `trash`.
    RemoveAll {
        client: Option<ConnId>,
        order: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        trash: PathBuf,
    },
}

/// Whether the path of a worktree exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorktreePath {
    Present,
    Missing,
}

/// The result of a git job.
#[derive(Debug)]
pub(crate) enum WorktreeResult {
    Proposed {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        result: Result<Box<WorktreeCreation>, ErrorReport>,
    },
    /// Git has filled a worktree, or failed to. `result` is the directory in the worktree in which
    /// the member works. `path` says whether anything exists at the path of the worktree, also
    /// after an error.
    Filled { creation: Box<WorktreeCreation>, result: Result<PathBuf, ErrorReport>, path: WorktreePath },
    /// `result` is an error if a worktree can't be removed, as far as that is known while the
    /// members still run.
    UnsavedChecked { client: Option<ConnId>, order: DeleteTeamRequest, result: Result<(), ErrorReport> },
    /// `removed_worktrees` says what became of each worktree, even after an error.
    RemovedAll {
        client: Option<ConnId>,
        order: DeleteTeamRequest,
        removed_worktrees: RemovedWorktrees,
        result: Result<(), ErrorReport>,
    },
}
