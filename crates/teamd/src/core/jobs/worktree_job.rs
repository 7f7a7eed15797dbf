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
    pub(crate) surroundings: GitEnvironment,
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
        surroundings: GitEnvironment,
    },
    /// Let git fill a worktree. The saved roster names it.
    Fill(Box<WorktreeCreation>),
    /// Check whether unsaved work would prevent the removal, once the processes below these shims
    /// have ended. Nothing is changed.
    CheckUnsaved {
        client: ConnId,
        order: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        shim_pids: BTreeSet<u32>,
    },
    /// Remove all worktrees of a team, or none. Unsaved work is discarded only if the request names
    /// the worktree, and is saved below `trash`.
    RemoveAll { client: ConnId, order: DeleteTeamRequest, grounds: Vec<MemberWorktree>, trash: PathBuf },
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
    /// The working directory in the worktree. `path`: whether something is at the path of the
    /// worktree, even after an error.
    Filled { making: Box<WorktreeCreation>, result: Result<PathBuf, ErrorReport>, path: WorktreePath },
    /// An error for worktrees that can't be removed, as far as is known while members run.
    UnsavedChecked { client: ConnId, order: DeleteTeamRequest, result: Result<(), ErrorReport> },
    /// What became of each worktree, even after an error.
    RemovedAll {
        client: ConnId,
        order: DeleteTeamRequest,
        swept: RemovedWorktrees,
        result: Result<(), ErrorReport>,
    },
}
