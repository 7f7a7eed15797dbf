//! Requests and replies about the git worktrees of a team's members.

use crate::team_and_member_names::{MemberName, TeamName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Creates a git worktree for a member that will be spawned. The daemon reserves the member's name
/// for the spawn request, for at most 30 s. `Debug` omits the environment, which can contain
/// secrets.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeRequest {
    /// The member's team.
    pub team: TeamName,
    /// The requested name of the member.
    pub name: MemberName,
    /// Whether to append `-2`, `-3` … if the name is taken.
    pub unique: bool,
    /// A directory in the repository, an absolute path.
    pub cwd: PathBuf,
    /// The branch to check out. It must not be checked out in another worktree. If the branch does
    /// not exist, it is created. `None` means a new branch `teamd/TEAM/NAME` from HEAD.
    pub branch: Option<String>,
    /// The environment of git, its filters and the repository's post-checkout hook.
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for WorktreeRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "worktree for {}@{} of {} {:?}", self.name, self.team, self.cwd.display(), self.branch)
    }
}

/// The reply to a [`WorktreeRequest`]: the worktree.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeReply {
    /// The final name of the member.
    pub name: MemberName,
    /// Path of the worktree.
    pub path: PathBuf,
    /// The branch that is checked out.
    pub branch: String,
    /// The directory of the worktree that corresponds to the request's `cwd`.
    pub cwd: PathBuf,
    /// Whether the worktree already existed from an earlier spawn of the member.
    pub is_reused: bool,
}

/// A worktree of a current or past member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeStatus {
    /// Name of the member.
    pub member: MemberName,
    /// Path of the worktree.
    pub path: PathBuf,
    /// The branch that was checked out when the worktree was created.
    pub branch: String,
    /// The git directory that the repository's worktrees share.
    pub repository: PathBuf,
}

/// What was done with the worktrees of a deleted team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemovedWorktrees {
    /// Worktrees that were removed. They had no unsaved work.
    #[serde(default)]
    pub removed: Vec<PathBuf>,
    /// Worktrees that were removed after their unsaved work was saved in the trash.
    #[serde(default)]
    pub trashed: Vec<TrashedWorktree>,
    /// Recorded worktrees whose paths no longer exist, so that there was nothing to remove. A
    /// missing worktree that git still lists is here only if its path is in the request's
    /// `discard_worktrees`.
    #[serde(default)]
    pub missing: Vec<PathBuf>,
    /// Each text names a worktree that was not removed, and the reason: another directory is now at
    /// its path.
    #[serde(default)]
    pub kept: Vec<String>,
    /// Why teardown commands have failed. Their worktrees were removed nevertheless.
    #[serde(default)]
    pub failed_teardowns: Vec<String>,
}

/// A removed worktree whose unsaved work was saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrashedWorktree {
    /// Former path of the worktree.
    pub path: PathBuf,
    /// Directory with the saved work. Its README says how to restore the work.
    pub trash_dir: PathBuf,
}

impl std::fmt::Display for TrashedWorktree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, readme) = (self.path.display(), self.trash_dir.join("README"));
        write!(f, "{path} is in the trash; how to have it back: {}", readme.display())
    }
}
