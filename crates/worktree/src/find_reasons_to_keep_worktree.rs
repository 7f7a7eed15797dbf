//! Finds the reasons to keep a worktree: everything that would be lost if it were removed, and
//! everything that prevents its removal.

use crate::disable_filters_and_hooks_of_repository::filters_not_run;
use crate::error::Error;
use crate::files_created_before_agent_starts::remove_unchanged;
use crate::find_remote_with_untracked_branches::find_narrow_remote;
use crate::git_environment::GitEnvironment;
use crate::head_and_reflog_of_worktree::HeadState;
use crate::keep_reason::KeepReason;
use crate::mount_points::mount_points_below;
use crate::repository_and_its_worktrees::list_worktrees;
use crate::uncommitted_files::FileStatus;
use crate::worktree_handle::Worktree;
use crate::worktree_record::{WorktreeRecord, WorktreeState};
use crate::{count_commits_lost_with_worktree, processes_using_directory, stashes_of_worktree};
use std::fs::read_to_string;
use std::path::Path;

/// Files and directories that git keeps in the worktree's git directory while an operation such as
/// a rebase is unfinished. Each entry also has the name of the operation.
const OPERATION_FILES: [(&str, &str); 8] = [
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("MERGE_AUTOSTASH", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("sequencer", "cherry-pick"),
];

impl WorktreeRecord {
    /// Returns every reason not to remove the worktree. If there is no reason, the worktree can be
    /// removed without losing work.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] if something else is at the worktree's path; the errors of git
    /// commands ([`Error::Git`], [`Error::NoGit`], [`Error::ProgramMissing`], [`Error::Timeout`],
    /// [`Error::Io`]). After an error, the worktree may have unsaved work.
    pub fn keep_reasons(&self, environment: &GitEnvironment) -> Result<Vec<KeepReason>, Error> {
        match self.state()? {
            WorktreeState::Present(git_dir) => Worktree { record: self, git_dir, environment }.keep_reasons(),
            WorktreeState::Empty => Ok(Vec::new()),
            // The directory is missing, but git still lists the worktree. So git has not removed
            // the worktree: its directory may have been moved, with work in it.
            WorktreeState::Missing if self.is_listed(environment)? => Ok(vec![KeepReason::PathMissing]),
            WorktreeState::Missing => Ok(Vec::new()),
        }
    }

    /// Returns only the reasons of [`WorktreeRecord::keep_reasons`] that concern uncommitted work:
    /// files whose content is in no commit, and operations in progress, such as a rebase.
    ///
    /// # Errors
    ///
    /// The errors of [`WorktreeRecord::keep_reasons`].
    pub fn uncommitted_reasons(&self, environment: &GitEnvironment) -> Result<Vec<KeepReason>, Error> {
        match self.state()? {
            WorktreeState::Present(git_dir) => {
                let worktree = Worktree { record: self, git_dir, environment };
                let status = FileStatus::read(self.path.as_path(), &worktree.git())?;
                let mut reasons = worktree.file_reasons(status)?;
                reasons.extend(operations_in_progress(&worktree.git_dir));
                Ok(reasons)
            }
            WorktreeState::Missing | WorktreeState::Empty => Ok(Vec::new()),
        }
    }

    /// Whether git lists a worktree at this path.
    fn is_listed(&self, environment: &GitEnvironment) -> Result<bool, Error> {
        Ok(list_worktrees(&self.common_git_dir, environment)?.iter().any(|other| other.path == self.path))
    }
}

impl Worktree<'_> {
    /// Returns the reasons to keep a worktree that is present.
    fn keep_reasons(&self) -> Result<Vec<KeepReason>, Error> {
        let (git, record) = (self.git(), self.record);
        let status = FileStatus::read(self.path(), &git)?;
        let repositories = status.cached_repositories.clone();
        let mut reasons = self.file_reasons(status)?;
        reasons.extend(repositories.into_iter().map(KeepReason::Repository));
        let head_state = HeadState::read(&git)?;
        let detached = count_commits_lost_with_worktree::count_detached(record, &git, &head_state)?;
        let reflog_only = count_commits_lost_with_worktree::reflog_only_commits(record, &git, &head_state)?;
        let counts = [
            (
                count_commits_lost_with_worktree::count_unpushed(record, &git, &head_state)?,
                KeepReason::Unpushed as fn(u64) -> KeepReason,
            ),
            (detached, KeepReason::Detached),
            (reflog_only.len() as u64, KeepReason::ReflogOnly),
        ];
        reasons.extend(counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, reason)| reason(n)));
        if reasons.iter().any(|reason| matches!(reason, KeepReason::Unpushed(_))) {
            reasons.extend(find_narrow_remote(&git)?.map(KeepReason::NarrowRemote));
        }
        if !git.succeeds("check the log", &["reflog", "exists", "HEAD"])? {
            reasons.push(KeepReason::ReflogMissing);
        }
        let stashes = stashes_of_worktree::stashes_of_worktree(record, &git, &head_state)?;
        reasons.extend((!stashes.is_empty()).then_some(KeepReason::Stashed(stashes.len())));
        reasons.extend(lock_reasons(&self.git_dir));
        reasons.extend(operations_in_progress(&self.git_dir));
        reasons.extend(self.submodules_with_unsaved_work()?.into_iter().map(KeepReason::Submodule));
        reasons.extend(mount_points_below(self.path())?.into_iter().map(KeepReason::MountPoint));
        // The check for processes comes last, because the other checks take long and processes may
        // start meanwhile.
        let pids = processes_using_directory::processes_using(self.path())?;
        reasons.extend((!pids.is_empty()).then_some(KeepReason::InUse(pids)));
        Ok(reasons)
    }

    /// Returns a reason for each kind of unsaved files in `status`. An ignored file does not count
    /// if it existed before the agent started and has not changed since.
    fn file_reasons(&self, mut status: FileStatus) -> Result<Vec<KeepReason>, Error> {
        remove_unchanged(&mut status.ignored, self.path(), &self.git_dir)?;
        let filters = filters_not_run(&self.git(), &status.unstaged)?;
        let unstaged = [status.unstaged, status.unmerged].concat();
        let kinds = [
            (status.staged, KeepReason::Staged as fn(Vec<std::path::PathBuf>) -> KeepReason),
            (unstaged, KeepReason::Unstaged),
            (status.untracked, KeepReason::Untracked),
            (status.ignored, KeepReason::Ignored),
            (status.ignored_by_status, KeepReason::IgnoredByStatus),
        ];
        let kinds = kinds.into_iter().filter(|(files, _)| !files.is_empty());
        let reasons = kinds.map(|(files, reason)| reason(files));
        Ok(reasons.chain(filters.into_iter().map(KeepReason::FilterNotRun)).collect())
    }
}

/// Returns a reason if the worktree was locked with `git worktree lock`, and a reason for each lock
/// file of a running or killed git command.
fn lock_reasons(git_dir: &Path) -> Vec<KeepReason> {
    let lock_reason = read_to_string(git_dir.join("locked"));
    let lock_reason = lock_reason.ok().map(|reason| KeepReason::Locked(reason.trim().to_owned()));
    let locks = ["index.lock", "HEAD.lock"].map(|name| git_dir.join(name));
    let lock_files =
        locks.into_iter().filter(|lock| lock.symlink_metadata().is_ok()).map(KeepReason::GitLockFile);
    lock_reason.into_iter().chain(lock_files).collect()
}

/// Returns a reason for each operation in progress, such as a rebase.
fn operations_in_progress(git_dir: &Path) -> Vec<KeepReason> {
    let mut reasons: Vec<KeepReason> = Vec::new();
    for (name, operation) in OPERATION_FILES {
        let reason = KeepReason::OperationInProgress(operation);
        if git_dir.join(name).symlink_metadata().is_ok() && !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}
