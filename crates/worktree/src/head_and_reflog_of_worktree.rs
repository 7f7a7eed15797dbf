//! Reads the HEAD of a worktree, and the commits and branches that its reflog names.

use crate::error::Error;
use crate::git_command::Git;
use crate::worktree_record::WorktreeRecord;

/// The state of the worktree's HEAD, and its history according to the reflog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeadState {
    /// The commit. `None` if there is no commit yet.
    pub(crate) head: Option<String>,
    /// The branch. `None` if HEAD is detached.
    pub(crate) branch: Option<String>,
    /// Every commit that HEAD was at, newest first.
    pub(crate) reflog: Vec<String>,
    /// Every branch that HEAD was on. A branch may occur several times.
    pub(crate) visited_branches: Vec<String>,
}

impl HeadState {
    /// Reads the HEAD of the directory in which `git` runs.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::run`].
    pub(crate) fn read(git: &Git<'_>) -> Result<HeadState, Error> {
        let action = "check HEAD";
        let head = git.text_if_success(action, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        let branch = git.text_if_success(action, &["symbolic-ref", "--quiet", "HEAD"])?;
        let branch = branch.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned));
        let reflog_arguments = ["log", "--walk-reflogs", "--format=%H %gs", "HEAD", "--"];
        let log = git.text_if_success(action, &reflog_arguments)?.unwrap_or_default();
        let (mut reflog, mut visited_branches) = (Vec::new(), Vec::new());
        for (commit, message) in log.lines().filter_map(|line| line.split_once(' ')) {
            reflog.push(commit.to_owned());
            let checkout =
                message.strip_prefix("checkout: moving from ").and_then(|rest| rest.split_once(" to "));
            visited_branches.extend(
                checkout
                    .into_iter()
                    .flat_map(|(old_branch, new_branch)| [old_branch.to_owned(), new_branch.to_owned()]),
            );
        }
        Ok(HeadState { head, branch, reflog, visited_branches })
    }

    /// Returns the branches of the worktree: the one that it was created for, and the one it is on.
    pub(crate) fn own_branches(&self, record: &WorktreeRecord) -> Vec<String> {
        let mut branches = vec![record.branch.clone()];
        branches.extend(self.branch.clone().filter(|branch| *branch != record.branch));
        branches
    }
}
