//! Looks up local branches: whether they exist, their last commit and their worktree. Checks the
//! names of new branches.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::git_environment::GitEnvironment;
use std::path::{Path, PathBuf};

/// Returns the full reference name of a branch.
pub(crate) fn branch_ref(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

/// Whether a local branch exists.
///
/// # Errors
///
/// The errors of [`Git::run`].
pub(crate) fn branch_exists(git: &Git<'_>, branch: &str) -> Result<bool, Error> {
    git.succeeds("check a branch", &["show-ref", "--verify", "--quiet", &branch_ref(branch)])
}

/// Returns the commit of a branch. `None` if the branch does not exist.
///
/// # Errors
///
/// The errors of [`Git::run`].
pub(crate) fn branch_tip(git: &Git<'_>, branch: &str) -> Result<Option<String>, Error> {
    git.text_if_success("check a branch", &["rev-parse", "--verify", "--quiet", &branch_ref(branch)])
}

/// Returns the commit of a branch. `None` if the branch does not exist. `repository` is the git
/// directory that all worktrees of the repository share.
///
/// # Errors
///
/// [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`].
pub fn commit_of_branch(
    repository: &Path,
    branch: &str,
    environment: &GitEnvironment,
) -> Result<Option<String>, Error> {
    branch_tip(&Git::with_git_dir(repository, environment), branch)
}

/// Returns the last commit of a branch, as its short hash and its subject. `None` if the branch
/// does not exist. `repository` is the git directory that all worktrees of the repository share.
///
/// # Errors
///
/// [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`].
pub fn last_commit(
    repository: &Path,
    branch: &str,
    environment: &GitEnvironment,
) -> Result<Option<String>, Error> {
    let git = Git::with_git_dir(repository, environment);
    let arguments = ["log", "-1", "--format=%h %s", &branch_ref(branch), "--"];
    git.text_if_success("look at the last commit", &arguments)
}

/// Counts the commits in the history of `commit` that are in the history of none of `others`.
/// `repository` is the git directory that all worktrees of the repository share.
///
/// # Errors
///
/// [`Error::Git`], [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`].
pub fn count_commits_in_none_of(
    repository: &Path,
    commit: &str,
    others: &[&str],
    environment: &GitEnvironment,
) -> Result<u64, Error> {
    let git = Git::with_git_dir(repository, environment);
    let arguments = [&["rev-list", "--count", commit, "--not"], others, &["--"]].concat();
    git.output_number("count the commits", &arguments, b"")
}

/// Returns the worktree in which a branch is checked out. `None` if there is none.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn worktree_on_branch(git: &Git<'_>, branch: &str) -> Result<Option<PathBuf>, Error> {
    let arguments = ["for-each-ref", "--format=%(worktreepath)", &branch_ref(branch)];
    let worktree = git.output_line("check a branch", &arguments)?;
    Ok((!worktree.is_empty()).then(|| worktree.into()))
}

/// Checks that git accepts `branch` as the name of a branch.
///
/// # Errors
///
/// [`Error::InvalidBranch`]; the errors of [`Git::run`].
pub(crate) fn check_branch_name(git: &Git<'_>, branch: &str) -> Result<(), Error> {
    let result = git.run("check a branch", &["check-ref-format", "--branch", branch], b"", READ_TIMEOUT)?;
    let is_valid = !branch.starts_with('-') && result.is_success();
    if is_valid && result.stdout.trim_ascii() == branch.as_bytes() {
        return Ok(());
    }
    Err(Error::InvalidBranch(branch.to_owned()))
}

/// Checks that no other branch prevents the new branch `branch`. For example, git cannot have
/// both `teamd` and `teamd/survey/ann`.
///
/// # Errors
///
/// [`Error::BranchBlocked`]; the errors of [`Git::output_of`].
pub(crate) fn check_not_blocked(git: &Git<'_>, branch: &str) -> Result<(), Error> {
    for (end, _) in branch.match_indices('/') {
        let parent = &branch[..end];
        if branch_exists(git, parent)? {
            return Err(Error::BranchBlocked { branch: branch.to_owned(), obstacle: parent.to_owned() });
        }
    }
    let child_prefix = format!("{}/", branch_ref(branch));
    let list = ["for-each-ref", "--count=1", "--format=%(refname:short)", &child_prefix];
    match git.output_text("find branches of the same name", &list)? {
        child if child.is_empty() => Ok(()),
        child => Err(Error::BranchBlocked { branch: branch.to_owned(), obstacle: child }),
    }
}
