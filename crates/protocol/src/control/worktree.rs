//! Worktrees on the control socket: asked for before a spawn, shown, and told of when a team goes.

use crate::name::{AgentName, TeamName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A git worktree for a member that is to be spawned in it; the name is held for a while. `Debug` leaves out the
/// environment, which may hold secrets.
#[derive(Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeRequest {
    /// The member's team.
    pub team: TeamName,
    /// The wanted name.
    pub name: AgentName,
    /// Take `-2`, `-3` where the name is taken.
    pub unique: bool,
    /// A directory in the repository, absolute.
    pub cwd: PathBuf,
    /// The branch: checked out if it is there and free, else made; none: `teamd/TEAM/NAME`, from HEAD.
    pub branch: Option<String>,
    /// What git, its filters and the repository's post-checkout hook run in.
    pub env: BTreeMap<String, String>,
}

impl std::fmt::Debug for WorktreeRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "worktree for {}@{} of {} {:?}", self.name, self.team, self.cwd.display(), self.branch)
    }
}

/// The worktree that is there now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeReply {
    /// The name that it is for.
    pub name: AgentName,
    /// Where it is.
    pub path: PathBuf,
    /// What is checked out.
    pub branch: String,
    /// The directory in it that the asked one stands for.
    pub cwd: PathBuf,
    /// It was there already, from an earlier life of the member.
    #[serde(rename = "again")]
    pub is_reused: bool,
}

/// A worktree that was made for a member, living or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorktreeStatus {
    /// Whose.
    pub member: AgentName,
    /// Where it is.
    pub path: PathBuf,
    /// The branch that was checked out.
    pub branch: String,
    /// The directory that the repository's worktrees share.
    pub repository: PathBuf,
}

/// What became of a team's worktrees when it was deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemovedWorktrees {
    /// Removed; nothing was lost with them.
    #[serde(default)]
    pub removed: Vec<PathBuf>,
    /// Removed, and what was in them is saved.
    #[serde(default)]
    pub trashed: Vec<TrashedWorktree>,
    /// Neither there any more nor known to git; and those not there that were named all the same. Nothing was touched.
    #[serde(default)]
    #[serde(rename = "gone")]
    pub missing: Vec<PathBuf>,
    /// Left where they are, each with the reason: what is there is not what was made.
    #[serde(default)]
    #[serde(rename = "left")]
    pub kept: Vec<String>,
}

/// A worktree that was removed with unsaved work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrashedWorktree {
    /// Where it was.
    pub path: PathBuf,
    /// Where what was in it is saved; README there says how it is had back.
    #[serde(rename = "trash")]
    pub trash_dir: PathBuf,
}

impl std::fmt::Display for TrashedWorktree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (path, readme) = (self.path.display(), self.trash_dir.join("README"));
        write!(f, "{path} is in the trash; how to have it back: {}", readme.display())
    }
}
