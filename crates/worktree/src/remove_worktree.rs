//! Removes worktrees and their merged branches.
//!
//! Only a worktree that teamd has recorded is removed, with `git worktree remove`. The option
//! `--force` is used if the worktree has submodules, after they were checked for unsaved work. It
//! is also used to discard a worktree: to remove it with its unsaved work, which was saved before.
//!
//! A branch that was created for the worktree is deleted if it is merged, and kept otherwise. If
//! the worktree is discarded, the kept branch gets a new name.

use crate::create_delete_rename_branch_of_worktree::{delete_merged_branch, rename_discarded_branch};
use crate::error::{Error, io_error};
use crate::git_command::{Git, WRITE_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::keep_reason::KeepReason;
use crate::mount_points::check_no_mount_point;
use crate::save_unsaved_work::SavedWorktree;
use crate::trash_branch_names::trash_branch;
use crate::worktree_fingerprint::WorktreeFingerprint;
use crate::worktree_handle::Worktree;
use crate::worktree_record::{WorktreeRecord, WorktreeState};
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
    /// Checks the worktree for unsaved work, and removes it if there is none.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] if something else is at the path; then nothing was changed. Also the
    /// errors of git commands ([`Error::Git`], [`Error::NoGit`], [`Error::ProgramMissing`],
    /// [`Error::Timeout`], [`Error::Io`]).
    pub fn remove(&self, environment: &GitEnvironment) -> Result<RemoveOutcome, Error> {
        let reasons = self.keep_reasons(environment)?;
        if !reasons.is_empty() {
            return Ok(RemoveOutcome::Kept(reasons));
        }
        match self.state()? {
            // The worktree's directory is missing, but an earlier call may have been killed before
            // it deleted the branch. So the branch is deleted here.
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

    /// Removes the worktree together with its unsaved work, which must have been saved: `saved` is
    /// the result of [`WorktreeRecord::save`]. If the branch was created for the worktree and is
    /// not merged, the branch gets a new name. The README of the saved worktree contains the new
    /// name.
    ///
    /// # Errors
    ///
    /// The errors of [`WorktreeRecord::remove`]; [`Error::ChangedWhileSaving`] if the worktree has
    /// changed since it was saved; [`Error::MountPoint`].
    pub fn discard(
        &self,
        saved: &SavedWorktree,
        environment: &GitEnvironment,
    ) -> Result<RemoveOutcome, Error> {
        let worktree = self.open(environment)?;
        if WorktreeFingerprint::read(&worktree)? != saved.fingerprint {
            return Err(Error::ChangedWhileSaving(self.path.clone()));
        }
        // With one `--force`, git removes a worktree with unsaved work; with two, also a locked
        // one.
        worktree.git_remove(&["--force", "--force"])?;
        let outcome = self.remove_parent_and_branch(environment)?;
        if outcome == RemoveOutcome::RemovedKeptBranch {
            rename_discarded_branch(self, &trash_branch(&saved.directory), environment)?;
        }
        Ok(outcome)
    }

    /// Removes a new worktree in which no agent has worked yet, with all files in it. Its branch is
    /// deleted if it was created for the worktree and has no commit of its own.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`], [`Error::MountPoint`], [`Error::Io`]; the errors of git commands.
    pub fn remove_before_agent_starts(&self, environment: &GitEnvironment) -> Result<(), Error> {
        self.open(environment)?.git_remove(&["--force", "--force"])?;
        self.remove_parent_and_branch(environment).map(drop)
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
