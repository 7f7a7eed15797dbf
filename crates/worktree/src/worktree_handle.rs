//! A recorded worktree that was found at its path. With this handle, git commands are run in the
//! worktree.

use crate::error::Error;
use crate::git_command::Git;
use crate::git_environment::GitEnvironment;
use crate::worktree_record::WorktreeRecord;
use std::path::{Path, PathBuf};

/// A recorded worktree that was found at its path.
#[derive(Debug)]
pub(crate) struct Worktree<'a> {
    pub(crate) record: &'a WorktreeRecord,
    /// Its private git directory, such as `REPO/.git/worktrees/NAME`.
    pub(crate) git_dir: PathBuf,
    pub(crate) environment: &'a GitEnvironment,
}

impl WorktreeRecord {
    /// Checks that the recorded worktree is at its path, and returns a handle to it.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] if the recorded worktree is not at its path; [`Error::Io`].
    pub(crate) fn open<'a>(&'a self, environment: &'a GitEnvironment) -> Result<Worktree<'a>, Error> {
        Ok(Worktree { record: self, git_dir: self.private_git_dir()?, environment })
    }
}

impl<'a> Worktree<'a> {
    /// Returns its absolute path.
    pub(crate) fn path(&self) -> &'a Path {
        &self.record.path
    }

    /// Returns a `Git` for commands in the worktree.
    pub(crate) fn git(&self) -> Git<'a> {
        self.record.git(self.environment)
    }

    /// Returns a `Git` for commands in the working tree `path`. `path` is the path of a submodule,
    /// relative to the worktree. The empty path stands for the worktree itself.
    pub(crate) fn git_in(&self, path: &Path) -> Git<'a> {
        Git::in_directory(&self.path().join(path), self.environment)
    }
}
