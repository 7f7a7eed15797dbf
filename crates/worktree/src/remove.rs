//! Removes worktrees and their merged branches.
//!
//! Only a recorded worktree is removed, with `git worktree remove`. `--force` is used in two cases:
//! the worktree has submodules, which were checked for unsaved work, or its unsaved work was just
//! saved.
//!
//! A branch that was created for the worktree is deleted if it is merged. Otherwise it is kept. If
//! the worktree was discarded (removed with unsaved work), the kept branch gets a new name.

use crate::branch::trash_branch;
use crate::created_branch::{delete_merged_branch, rename_discarded_branch};
use crate::error::{Error, io_error};
use crate::fingerprint::WorktreeFingerprint;
use crate::git_command::{Git, GitEnvironment, WRITE_TIMEOUT};
use crate::keep_reason::KeepReason;
use crate::mount_points::check_no_mount_point;
use crate::record::{WorktreeRecord, WorktreeState};
use crate::save::SavedWorktree;
use crate::worktree_handle::Worktree;
use std::ffi::OsStr;
use std::fs::remove_dir;

/// The result of removing a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// The worktree did not exist any more. Its merged branch may have been deleted.
    AlreadyGone,
    /// The worktree was removed, and its merged branch deleted.
    Removed,
    /// The worktree was removed. Its branch stays, or was renamed if the worktree was discarded.
    RemovedKeptBranch,
    /// The worktree was kept for these reasons.
    Kept(Vec<KeepReason>),
}

impl WorktreeRecord {
    /// Removes the worktree if it has no unsaved work. This method itself checks for unsaved work.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`]; nothing was changed then. The errors of every git command.
    pub fn remove(&self, environment: &GitEnvironment) -> Result<RemoveOutcome, Error> {
        let reasons = self.keep_reasons(environment)?;
        if !reasons.is_empty() {
            return Ok(RemoveOutcome::Kept(reasons));
        }
        match self.state()? {
            // An earlier call may have been killed before it removed the directory and the branch.
            WorktreeState::Missing => {
                return self.remove_parent_and_branch(environment).map(|_| RemoveOutcome::AlreadyGone);
            }
            WorktreeState::Empty => remove_dir(&self.path).map_err(io_error("remove", &self.path))?,
            WorktreeState::Present(git_dir) => {
                // Git removes a worktree with submodules only with `--force`. The submodules have
                // no unsaved work: `keep_reasons` has checked them.
                let worktree = Worktree { record: self, git_dir, environment };
                worktree.git_remove(if worktree.has_submodules()? { &["--force"] } else { &[] })?;
            }
        }
        self.remove_parent_and_branch(environment)
    }

    /// Removes the worktree with its unsaved work. `saved` proves that the work was saved before. A
    /// branch that was created for the worktree and is not merged is renamed; the saved README has
    /// its new name.
    ///
    /// # Errors
    ///
    /// As [`WorktreeRecord::remove`]; [`Error::ChangedWhileSaving`] if the worktree has changed
    /// since it was saved.
    pub fn discard(
        &self,
        saved: &SavedWorktree,
        environment: &GitEnvironment,
    ) -> Result<RemoveOutcome, Error> {
        let worktree = self.open(environment)?;
        if WorktreeFingerprint::read(&worktree)? != saved.fingerprint {
            return Err(Error::ChangedWhileSaving(self.path.clone()));
        }
        // The second `--force` also removes a locked worktree.
        worktree.git_remove(&["--force", "--force"])?;
        let outcome = self.remove_parent_and_branch(environment)?;
        if outcome == RemoveOutcome::RemovedKeptBranch {
            rename_discarded_branch(self, &trash_branch(&saved.directory), environment)?;
        }
        Ok(outcome)
    }

    /// Removes the directory for worktrees if it is empty, and deletes the merged branch.
    fn remove_parent_and_branch(&self, environment: &GitEnvironment) -> Result<RemoveOutcome, Error> {
        self.path.parent().map(remove_dir);
        let is_branch_deleted = delete_merged_branch(self, environment)?;
        Ok(if is_branch_deleted { RemoveOutcome::Removed } else { RemoveOutcome::RemovedKeptBranch })
    }
}

impl Worktree<'_> {
    /// Runs `git worktree remove`, if no file system is mounted in the worktree.
    fn git_remove(&self, force: &[&str]) -> Result<(), Error> {
        check_no_mount_point(self.path())?;
        let git = Git::with_git_dir(&self.record.common_git_dir, self.environment)
            .with_overrides(self.git().named_program_overrides()?);
        let mut arguments = vec![OsStr::new("worktree"), OsStr::new("remove")];
        arguments.extend(force.iter().map(OsStr::new));
        arguments.extend([OsStr::new("--"), self.path().as_os_str()]);
        let action = "remove the worktree";
        git.run(action, &arguments, b"", WRITE_TIMEOUT)?.stdout_or_error(action).map(drop)
    }
}
