//! The jobs for git and their results.

use crate::core::connection_spawn_and_watch_ids::ConnId;
use crate::core::roster::MemberWorktree;
use protocol::control_socket::{DeleteTeamRequest, RemovedWorktrees};
use protocol::error_kind_and_report::ErrorReport;
use protocol::policy::{WorktreeCommand, WorktreeCommandKind};
use protocol::team_and_member_names::{MemberName, TeamName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use worktree::{GitEnvironment, WorktreeOptions, WorktreeProposal};

/// A command of a policy, and what it needs in any worktree of the team.
#[derive(Clone)]
pub(crate) struct PolicyCommand {
    pub(crate) kind: WorktreeCommandKind,
    pub(crate) command: WorktreeCommand,
    pub(crate) team: TeamName,
    pub(crate) root: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// The variables of the client, and for `setup` those of the member.
    pub(crate) variables: BTreeMap<String, String>,
}

/// Shows no variables, because they may contain secrets.
impl std::fmt::Debug for PolicyCommand {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}: {}", self.kind.as_str(), self.team, self.command)
    }
}

/// A worktree that is being created.
#[derive(Debug, Clone)]
pub(crate) struct WorktreeCreation {
    pub(crate) client: ConnId,
    pub(crate) team: TeamName,
    pub(crate) name: MemberName,
    pub(crate) proposal: WorktreeProposal,
    pub(crate) environment: GitEnvironment,
    /// Runs in a new worktree.
    pub(crate) setup: Option<PolicyCommand>,
}

/// A git job.
#[derive(Debug)]
pub(crate) enum WorktreeJob {
    /// Choose path and branch of a worktree, and create its empty directory.
    Propose {
        client: ConnId,
        team: TeamName,
        name: MemberName,
        options: WorktreeOptions,
        environment: GitEnvironment,
        setup: Option<PolicyCommand>,
    },
    /// Let git fill a worktree. The saved roster names it.
    Fill(Box<WorktreeCreation>),
    /// Check whether the `worktrees` could be removed, without changing anything. Unsaved work
    /// prevents the removal, and so does a process that uses a worktree. Descendants of the shims
    /// `shim_pids` do not count, because they end with the members.
    CheckUnsaved {
        client: Option<ConnId>,
        request: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        shim_pids: BTreeSet<u32>,
    },
    /// Remove all worktrees of a team, after the policy's command `teardown` has run in them.
    /// `request` lists the worktrees that are removed despite unsaved work: the work is moved to
    /// the directory `trash`. If any other worktree has unsaved work, no worktree is removed.
    RemoveAll {
        client: Option<ConnId>,
        request: DeleteTeamRequest,
        worktrees: Vec<MemberWorktree>,
        trash: PathBuf,
        teardown: Option<PolicyCommand>,
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
        name: MemberName,
        result: Result<Box<WorktreeCreation>, ErrorReport>,
    },
    /// The result of checking out the files of a worktree. `result` is the member's working
    /// directory in the worktree. `path` says whether anything exists at the path of the worktree:
    /// after an error, some files may be left there.
    Filled { creation: Box<WorktreeCreation>, result: Result<PathBuf, ErrorReport>, path: WorktreePath },
    /// The result of the job `CheckUnsaved`: an error if a worktree can't be removed. The members
    /// still run during the check, so the removal can fail even after `Ok`.
    UnsavedChecked { client: Option<ConnId>, request: DeleteTeamRequest, result: Result<(), ErrorReport> },
    /// `removed_worktrees` says what became of each worktree, even after an error.
    RemovedAll {
        client: Option<ConnId>,
        request: DeleteTeamRequest,
        removed_worktrees: RemovedWorktrees,
        result: Result<(), ErrorReport>,
    },
}
