//! The end of a worktree: git removes it, without force where nothing is in it that git would mind, and only what is
//! recorded. Its branch goes where it has nothing of its own.

use crate::add::{is_at_base, was_created_for};
use crate::error::{Error, io_error};
use crate::fingerprint::WorktreeFingerprint;
use crate::git_command::{Git, GitEnvironment, READ_TIMEOUT, WRITE_TIMEOUT};
use crate::keep_reason::KeepReason;
use crate::local_commits::count_only_in_branch_log;
use crate::record::{WorktreeRecord, WorktreeState};
use crate::save::SavedWorktree;
use crate::submodule;
use std::ffi::OsStr;
use std::fs::remove_dir;
use std::path::Path;

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// There was nothing any more, but for its branch perhaps.
    AlreadyGone,
    /// It is removed; its branch had nothing of its own, and went too.
    Removed,
    /// It is removed, and its branch is there.
    RemovedKeptBranch,
    /// It is there, since something would be lost.
    Kept(Vec<KeepReason>),
}

impl WorktreeRecord {
    /// Removes it if nothing is lost with it: looked for here, once more.
    ///
    /// # Errors
    /// [`Error::NotOurs`], and then nothing was touched; as of every call of git.
    pub fn remove(&self, surroundings: &GitEnvironment) -> Result<RemoveOutcome, Error> {
        let reasons = self.keep_reasons(surroundings)?;
        if !reasons.is_empty() {
            return Ok(RemoveOutcome::Kept(reasons));
        }
        match self.state()? {
            // Whoever removed it may have been killed ahead of the rest.
            WorktreeState::Missing => {
                return self.remove_parent_and_branch(surroundings).map(|_| RemoveOutcome::AlreadyGone);
            }
            WorktreeState::Empty => remove_dir(&self.path).map_err(io_error("remove", &self.path))?,
            WorktreeState::Present(private) => {
                // Git removes none with a submodule otherwise; that nothing is in it was seen just now.
                let force = has_submodules(&self.path, &private, surroundings)?;
                self.git_worktree_remove(if force { &["--force"] } else { &[] }, surroundings)?;
            }
        }
        self.remove_parent_and_branch(surroundings)
    }

    /// Removes it with all that is in it, which was saved before.
    ///
    /// # Errors
    /// As [`Tree::remove`]; [`Error::Changed`] where it was written to after it was saved.
    pub fn discard(
        &self,
        saved: &SavedWorktree,
        surroundings: &GitEnvironment,
    ) -> Result<RemoveOutcome, Error> {
        self.private_git_dir()?;
        if WorktreeFingerprint::read(&self.path, surroundings)? != saved.fingerprint {
            return Err(Error::ChangedWhileSaving(self.path.clone()));
        }
        // Twice: also one that is locked.
        self.git_worktree_remove(&["--force", "--force"], surroundings)?;
        self.remove_parent_and_branch(surroundings)
    }

    fn git_worktree_remove(&self, force: &[&str], surroundings: &GitEnvironment) -> Result<(), Error> {
        let git = Git::with_git_dir(&self.common_git_dir, surroundings);
        let mut arguments = vec![OsStr::new("worktree"), OsStr::new("remove")];
        arguments.extend(force.iter().map(OsStr::new));
        arguments.extend([OsStr::new("--"), self.path.as_os_str()]);
        let verb = "remove the worktree";
        git.run(verb, &arguments, b"", WRITE_TIMEOUT)?.stdout_or_error(verb).map(drop)
    }

    /// The directory beside the repository goes when it is empty.
    fn remove_parent_and_branch(&self, surroundings: &GitEnvironment) -> Result<RemoveOutcome, Error> {
        self.path.parent().map(remove_dir);
        let dropped = delete_unused_branch(self, surroundings)?;
        Ok(if dropped { RemoveOutcome::Removed } else { RemoveOutcome::RemovedKeptBranch })
    }
}

/// Where it was made for the worktree, is where it began, and its log holds nothing else. Git has the last word.
pub(crate) fn delete_unused_branch(
    tree: &WorktreeRecord,
    surroundings: &GitEnvironment,
) -> Result<bool, Error> {
    let git = Git::with_git_dir(&tree.common_git_dir, surroundings);
    if !was_created_for(tree, &git)? || !is_at_base(tree, &git)? || count_only_in_branch_log(tree, &git)? > 0
    {
        return Ok(false);
    }
    let arguments = ["branch", "--delete", "--quiet", "--", &tree.branch];
    Ok(git.run("remove the branch", &arguments, b"", READ_TIMEOUT)?.is_success())
}

fn has_submodules(tree: &Path, private: &Path, surroundings: &GitEnvironment) -> Result<bool, Error> {
    let links = submodule::gitlinks(&Git::in_directory(tree, surroundings))?;
    Ok(!links.is_empty() || !submodule::find_repositories(&private.join("modules"))?.is_empty())
}
