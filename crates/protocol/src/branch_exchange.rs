//! The messages between `teamctl hosts send-branch` on a member's host and the home of its team,
//! one JSON value per line. The member's host first sends an [`OfferReply`], and the home answers
//! with a [`KnownCommits`]. Then the member's host sends a [`BundleReply`], followed by the bytes
//! of a git bundle and a newline. At last the home sends a [`Receipt`], and the member's host sends
//! the same [`Receipt`] back.

use crate::error_kind_and_report::ErrorReport;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the host offers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OfferReply {
    /// The branch of the member's worktree.
    Branch(OfferedBranch),
    /// The member has no worktree there.
    NoWorktree,
    /// The branch was deleted or renamed.
    NoBranch(String),
    /// The branch can't be read.
    Failed(ErrorReport),
}

/// The branch of a member's worktree on its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedBranch {
    /// The name of the branch.
    pub branch: String,
    /// The worktree there.
    pub worktree: PathBuf,
    /// The git directory there that all worktrees of the repository share.
    pub repository: PathBuf,
    /// The commit at which the worktree was created.
    pub base_commit: String,
    /// The newest commits, the last one first. There is at least one.
    pub commits: Vec<String>,
}

/// Those of the offered commits that the home has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownCommits {
    /// The commits. If the last commit of the branch is among them, the home needs no bundle.
    pub known: Vec<String>,
}

/// The bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BundleReply {
    /// So many bytes follow.
    Bytes(u64),
    /// Git can't make the bundle.
    Failed(ErrorReport),
}

/// The home has the branch up to this commit, which was offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The commit.
    pub received: String,
}
