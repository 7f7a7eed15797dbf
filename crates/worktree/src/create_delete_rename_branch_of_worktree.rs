//! Creates, deletes and renames the branch that is created for a worktree.
//!
//! When the worktree is removed, the branch is deleted if it is merged. If the worktree is removed
//! with unsaved work and the branch is not merged, the branch gets a new name. So the old name is
//! free for the next worktree.

use crate::count_commits_lost_with_worktree::{count_only_in_branch_log, count_unmerged};
use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::look_up_branches::{branch_ref, worktree_on_branch};
use crate::worktree_record::WorktreeRecord;

/// Creates the branch with `git update-ref`, which fails if a branch of this name exists. The first
/// entry in the branch's reflog names the worktree that the branch was created for.
pub(crate) fn create_branch(record: &WorktreeRecord, git: &Git<'_>) -> Result<(), Error> {
    let (action, message, branch) =
        ("create the branch", branch_log_message(record), branch_ref(&record.branch));
    let arguments = ["update-ref", "--create-reflog", "-m", &message, &branch, &record.base_commit, ""];
    git.without_named_programs()?
        .run(action, &arguments, b"", READ_TIMEOUT)?
        .stdout_or_error(action)
        .map(drop)
}

/// Returns the message of the branch's first reflog entry. By this message teamd recognizes a
/// branch that was created for this worktree. The message contains the inode of the worktree's
/// directory: no other directory has this inode while the worktree exists.
fn branch_log_message(record: &WorktreeRecord) -> String {
    format!("teamd: created for worktree inode {}", record.inode)
}

/// Whether the branch was created for this worktree. The first entry of the branch's reflog shows
/// this. False if the branch does not exist.
fn was_created_for(record: &WorktreeRecord, git: &Git<'_>) -> Result<bool, Error> {
    let arguments = ["log", "--walk-reflogs", "--format=%gs", &branch_ref(&record.branch), "--"];
    let reflog = git.run("check a branch", &arguments, b"", READ_TIMEOUT)?;
    let first_entry = reflog.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    Ok(reflog.is_success() && first_entry == Some(branch_log_message(record).as_bytes()))
}

/// Deletes the branch if it was created for this worktree and is merged. A branch is merged if each
/// of its commits is in another branch, local or remote, of a different name. A merged branch is
/// kept if its reflog has a commit that would be lost, because no branch and no tag has it. Returns
/// whether git has deleted the branch.
pub(crate) fn delete_merged_branch(
    record: &WorktreeRecord,
    environment: &GitEnvironment,
) -> Result<bool, Error> {
    let git = Git::with_git_dir(&record.common_git_dir, environment).without_named_programs()?;
    if !was_created_for(record, &git)?
        || count_unmerged(record, &git)? > 0
        || count_only_in_branch_log(record, &git)? > 0
    {
        return Ok(false);
    }
    // `--force` is needed, because without it git deletes only a branch that is merged into HEAD.
    // Even with `--force`, git keeps a branch that is checked out.
    let arguments = ["branch", "--delete", "--force", "--quiet", "--", &record.branch];
    git.succeeds("remove the branch", &arguments)
}

/// Renames the branch of a worktree that was discarded (removed with unsaved work) to `new_name`,
/// if the branch was created for this worktree. Under the old name, a person or a script could
/// merge the discarded commits by mistake. A branch that is checked out in another worktree keeps
/// its name.
pub(crate) fn rename_discarded_branch(
    record: &WorktreeRecord,
    new_name: &str,
    environment: &GitEnvironment,
) -> Result<(), Error> {
    let git = Git::with_git_dir(&record.common_git_dir, environment).without_named_programs()?;
    if !was_created_for(record, &git)? || worktree_on_branch(&git, &record.branch)?.is_some() {
        return Ok(());
    }
    let arguments = ["branch", "--move", "--", &record.branch, new_name];
    git.output_of("rename the branch", &arguments).map(drop)
}
