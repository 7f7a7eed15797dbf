//! What was done on the branch of a worktree: its commits, and which of them are not merged.

use crate::error::Error;
use crate::git_command::Git;
use crate::git_environment::GitEnvironment;
use crate::look_up_branches::{branch_exists, branch_ref};
use crate::worktree_record::WorktreeRecord;

/// How many characters of a commit's id stand for the commit in a text for people.
const SHORT_COMMIT_CHARS: usize = 12;

/// What was done on a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchProgress {
    /// The commits that were made on the branch since the worktree was created, newest first.
    /// Commits of other branches that were merged into it are left out.
    pub commits: Vec<BranchCommit>,
    /// The name of the branch that the worktree's branch is compared with: the branch that is
    /// checked out in the repository's main worktree. If no branch is checked out there, or the
    /// same branch, `target` is the short id of the commit at which the worktree was created.
    pub target: String,
    /// How many commits of the worktree's branch are not in `target`.
    pub unmerged: u64,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchCommit {
    /// The commit time, in milliseconds since the epoch.
    pub committed_at: u64,
    /// The beginning of the commit's id.
    pub id: String,
    /// The first line of the message.
    pub subject: String,
}

impl WorktreeRecord {
    /// Reads what was done on the branch that the worktree was created for. The worktree itself
    /// need not exist. `None` if the branch does not exist.
    ///
    /// # Errors
    ///
    /// The errors of git commands ([`Error::Git`], [`Error::NoGit`], [`Error::Timeout`],
    /// [`Error::Io`]).
    pub fn branch_progress(&self, environment: &GitEnvironment) -> Result<Option<BranchProgress>, Error> {
        let git = Git::with_git_dir(&self.common_git_dir, environment);
        if !branch_exists(&git, &self.branch)? {
            return Ok(None);
        }
        let branch = branch_ref(&self.branch);
        let new_commits = format!("{}..{branch}", self.base_commit);
        let log = ["log", "--first-parent", "--format=%ct %h %s", &new_commits, "--"];
        let log = git.output_of("list the commits", &log)?;
        let commits = String::from_utf8_lossy(&log).lines().filter_map(BranchCommit::parse).collect();
        let current_branch = self.current_branch(&git)?;
        let target_ref = current_branch.as_deref().map_or_else(|| self.base_commit.clone(), branch_ref);
        let unmerged_commits = format!("{target_ref}..{branch}");
        let count = ["rev-list", "--count", &unmerged_commits, "--"];
        let unmerged = git.output_number("count the commits", &count, b"")?;
        let short_base = || self.base_commit.chars().take(SHORT_COMMIT_CHARS).collect();
        Ok(Some(BranchProgress { commits, target: current_branch.unwrap_or_else(short_base), unmerged }))
    }

    /// The branch that is checked out in the repository's main worktree. `None` if the main
    /// worktree's HEAD names no branch, a branch that does not exist, or this worktree's branch.
    fn current_branch(&self, git: &Git<'_>) -> Result<Option<String>, Error> {
        let head = git.text_if_success("check HEAD", &["symbolic-ref", "--quiet", "HEAD"])?;
        let branch = head.and_then(|head| head.strip_prefix("refs/heads/").map(str::to_owned));
        match branch.filter(|branch| *branch != self.branch) {
            Some(branch) => Ok(branch_exists(git, &branch)?.then_some(branch)),
            None => Ok(None),
        }
    }
}

impl BranchCommit {
    /// Parses a line of `git log --format='%ct %h %s'`.
    fn parse(line: &str) -> Option<BranchCommit> {
        let mut parts = line.splitn(3, ' ');
        let committed_at = parts.next()?.parse::<u64>().ok()?.saturating_mul(1_000);
        let (id, subject) = (parts.next()?.to_owned(), parts.next().unwrap_or_default().to_owned());
        Some(BranchCommit { committed_at, id, subject })
    }
}
