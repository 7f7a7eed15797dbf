//! The jobs for git and their results.

use crate::core::id::ConnId;
use crate::core::roster::MemberWorktree;
use protocol::control::{DeleteTeamRequest, RemovedWorktrees};
use protocol::error::ErrorReport;
use protocol::name::{AgentName, TeamName};
use std::collections::BTreeSet;
use std::path::PathBuf;
use worktree::{GitEnvironment, WorktreeOptions, WorktreeProposal};

/// A worktree on its way.
#[derive(Debug, Clone)]
pub(crate) struct WorktreeCreation {
    pub(crate) client: ConnId,
    pub(crate) team: TeamName,
    pub(crate) name: AgentName,
    pub(crate) proposal: WorktreeProposal,
    pub(crate) surroundings: GitEnvironment,
}

/// Something to do with git.
#[derive(Debug)]
pub(crate) enum WorktreeJob {
    /// Decide what it will be, and make its empty directory.
    Propose {
        client: ConnId,
        team: TeamName,
        name: AgentName,
        wanted: WorktreeOptions,
        surroundings: GitEnvironment,
    },
    /// Fill it; the roster on disk names it.
    Fill(Box<WorktreeCreation>),
    /// See whether any of them would refuse it once those below these joins have ended. Nothing is touched.
    CheckUnsaved {
        client: ConnId,
        order: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        shim_pids: BTreeSet<u32>,
    },
    /// Remove all of a team, or none: those with unsaved work only if they are named, and saved below `trash`.
    RemoveAll { client: ConnId, order: DeleteTeamRequest, grounds: Vec<MemberWorktree>, trash: PathBuf },
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
    /// The directory in it; `is_there`: something is at its path, made or not.
    Filled { making: Box<WorktreeCreation>, result: Result<PathBuf, ErrorReport>, is_present: bool },
    /// Why not, as far as can be seen while members live.
    UnsavedChecked { client: ConnId, order: DeleteTeamRequest, result: Result<(), ErrorReport> },
    /// What became of each, also where the whole failed.
    RemovedAll {
        client: ConnId,
        order: DeleteTeamRequest,
        swept: RemovedWorktrees,
        result: Result<(), ErrorReport>,
    },
}
