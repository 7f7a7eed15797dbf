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
    /// Choose the branch and path of a worktree, and create its empty directory.
    Propose {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        wanted: WorktreeOptions,
        surroundings: GitEnvironment,
    },
    /// Let git fill the directory. The roster on disk must name the worktree.
    Fill(Box<WorktreeCreation>),
    /// Check for unsaved work that would prevent the deletion of a team. Processes below
    /// `shim_pids` do not count. Nothing is changed.
    CheckUnsaved {
        client: ConnId,
        order: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        shim_pids: BTreeSet<u32>,
    },
    /// Remove all worktrees of a team, or none. Worktrees with unsaved work are saved below
    /// `trash`, and removed only if the request discards them.
    RemoveAll { client: ConnId, order: DeleteTeamRequest, grounds: Vec<MemberWorktree>, trash: PathBuf },
}

/// Whether the path of a worktree exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorktreePath {
    Present,
    Missing,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum WorktreeResult {
    Proposed {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        result: Result<Box<WorktreeCreation>, ErrorReport>,
    },
    /// The working directory in the worktree. `path`: whether something is at the path of the worktree, even after an
    /// error.
    Filled { making: Box<WorktreeCreation>, result: Result<PathBuf, ErrorReport>, path: WorktreePath },
    /// Why not, as far as can be seen while members live.
    UnsavedChecked { client: ConnId, order: DeleteTeamRequest, result: Result<(), ErrorReport> },
    /// `swept` has the result for each worktree, also if the job failed.
    RemovedAll {
        client: ConnId,
        order: DeleteTeamRequest,
        swept: RemovedWorktrees,
        result: Result<(), ErrorReport>,
    },
}
