//! Finds submodules with unsaved work. The repository of a submodule is removed with the worktree,
//! so commits that are on no remote would be lost.

use crate::error::Error;
use crate::git_command::Git;
use crate::stashes_of_worktree;
use crate::uncommitted_files::FileStatus;
use crate::worktree_handle::Worktree;
use std::path::{Path, PathBuf};

impl Worktree<'_> {
    /// Returns the submodules with unsaved work. The path of a submodule is relative to the
    /// worktree. A submodule that is not checked out is returned as the absolute path of its
    /// repository.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn submodules_with_unsaved_work(&self) -> Result<Vec<PathBuf>, Error> {
        let mut submodules = Vec::new();
        for path in self.checked_out_submodules()? {
            if has_unsaved_work(&self.path().join(&path), &self.git_in(&path))? {
                submodules.push(path);
            }
        }
        for path in self.unused_repositories()? {
            if has_local_commits(&Git::with_git_dir(&path, self.environment))? {
                submodules.push(path);
            }
        }
        Ok(submodules)
    }
}

/// Whether a submodule has unsaved files, commits that no remote has, or stashes.
fn has_unsaved_work(path: &Path, git: &Git<'_>) -> Result<bool, Error> {
    Ok(!FileStatus::read(path, git)?.is_clean() || has_local_commits(git)?)
}

/// Whether a repository has commits that no remote has, or stashes.
fn has_local_commits(git: &Git<'_>) -> Result<bool, Error> {
    let action = "check a submodule";
    let arguments = ["rev-list", "--max-count=1", "--all", "HEAD", "--reflog", "--not", "--remotes"];
    let has_head = git.succeeds(action, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    Ok(has_head && !git.output_of(action, &arguments)?.is_empty()
        || stashes_of_worktree::count_stashes(git)? > 0)
}
