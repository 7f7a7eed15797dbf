//! Looks up local branches.

use crate::error::Error;
use crate::git_command::Git;

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
