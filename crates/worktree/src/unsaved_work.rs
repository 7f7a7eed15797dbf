//! What would be lost with a worktree, or is in the way of removing it: every kind that there is, each looked for.

use crate::error::Error;
use crate::git_command::GitEnvironment;
use crate::keep_reason::KeepReason;
use crate::local_commits::{self, HeadState};
use crate::record::{WorktreeRecord, WorktreeState};
use crate::repository::list_worktrees;
use crate::status::FileStatus;
use crate::{processes_inside, stash, submodule};
use std::fs::read_to_string;
use std::path::Path;

/// What git leaves in a worktree's own directory while something is under way.
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
    /// Every reason not to remove it. Empty: nothing is lost with it.
    ///
    /// # Errors
    /// [`Error::NotOurs`]; where it could not be looked at, which is not the same as nothing.
    pub fn keep_reasons(&self, surroundings: &GitEnvironment) -> Result<Vec<KeepReason>, Error> {
        match self.state()? {
            WorktreeState::Present(private) => self.reasons_if_present(&private, surroundings),
            WorktreeState::Empty => Ok(Vec::new()),
            // Git forgets one that is removed, by itself or in `git worktree prune`; not one that is moved away.
            WorktreeState::Missing if self.is_listed(surroundings)? => Ok(vec![KeepReason::PathMissing]),
            WorktreeState::Missing => Ok(Vec::new()),
        }
    }

    fn is_listed(&self, surroundings: &GitEnvironment) -> Result<bool, Error> {
        Ok(list_worktrees(&self.common_git_dir, surroundings)?.iter().any(|other| other.path == self.path))
    }

    fn reasons_if_present(
        &self,
        private: &Path,
        surroundings: &GitEnvironment,
    ) -> Result<Vec<KeepReason>, Error> {
        let git = self.git(surroundings);
        let mut reasons = file_reasons(FileStatus::read(&self.path, &git)?);
        let heads = HeadState::read(&git)?;
        let detached = local_commits::count_detached(self, &git, &heads)?;
        let abandoned = local_commits::reflog_only_commits(self, &git, &heads)?;
        let counted = [
            (
                local_commits::count_unpushed(self, &git, &heads)?,
                KeepReason::Unpushed as fn(u64) -> KeepReason,
            ),
            (detached, KeepReason::Detached),
            (abandoned.len() as u64, KeepReason::ReflogOnly),
        ];
        reasons.extend(counted.into_iter().filter(|(n, _)| *n > 0).map(|(n, reason)| reason(n)));
        let stashes = stash::stashes_of_worktree(self, &git, &heads)?;
        reasons.extend((!stashes.is_empty()).then_some(KeepReason::Stashed(stashes.len())));
        reasons.extend(lock_reasons(private));
        reasons.extend(operations_in_progress(private));
        let worked = submodule::with_unsaved_work(&self.path, private, surroundings)?;
        reasons.extend(worked.into_iter().map(KeepReason::Submodule));
        // As late as can be: the rest takes its time.
        let inside = processes_inside::processes_using(&self.path);
        reasons.extend((!inside.is_empty()).then_some(KeepReason::InUse(inside)));
        Ok(reasons)
    }
}

fn file_reasons(status: FileStatus) -> Vec<KeepReason> {
    let unstaged = [status.unstaged, status.unmerged].concat();
    let kinds = [
        (status.staged, KeepReason::Staged as fn(Vec<std::path::PathBuf>) -> KeepReason),
        (unstaged, KeepReason::Unstaged),
        (status.untracked, KeepReason::Untracked),
        (status.ignored, KeepReason::Ignored),
        (status.ignored_by_status, KeepReason::IgnoredByStatus),
    ];
    kinds.into_iter().filter(|(files, _)| !files.is_empty()).map(|(files, reason)| reason(files)).collect()
}

fn lock_reasons(private: &Path) -> Vec<KeepReason> {
    let words = read_to_string(private.join("locked"));
    let kept = words.ok().map(|why| KeepReason::Locked(why.trim().to_owned()));
    let locks = ["index.lock", "HEAD.lock"].map(|name| private.join(name));
    let busy = locks.into_iter().filter(|lock| lock.symlink_metadata().is_ok()).map(KeepReason::GitLockFile);
    kept.into_iter().chain(busy).collect()
}

fn operations_in_progress(private: &Path) -> Vec<KeepReason> {
    let mut found: Vec<KeepReason> = Vec::new();
    for (name, what) in OPERATION_FILES {
        let reason = KeepReason::OperationInProgress(what);
        if private.join(name).symlink_metadata().is_ok() && !found.contains(&reason) {
            found.push(reason);
        }
    }
    found
}
