//! Finds the stashes that were made in a worktree.
//!
//! Stashes belong to the repository, so they stay when a worktree is removed. A stash does not name
//! its worktree, only the branch and the commit on which it was made. While the worktree exists,
//! its branches and its reflog show which stashes were made in it.

use crate::error::Error;
use crate::git_command::Git;
use crate::head_and_reflog_of_worktree::HeadState;
use crate::worktree_record::WorktreeRecord;

/// Returns the commits of the stashes that were made in this worktree. A stash counts if it was
/// made on one of the worktree's branches, or on a commit in the reflog of its HEAD.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn stashes_of_worktree(
    record: &WorktreeRecord,
    git: &Git<'_>,
    head_state: &HeadState,
) -> Result<Vec<String>, Error> {
    let stashes = list_stashes(git)?;
    let is_own = |stash: &&Stash| match stash_branch(&stash.subject) {
        Some("(no branch)") | None => head_state.reflog.contains(&stash.parent),
        Some(branch) => head_state
            .own_branches(record)
            .iter()
            .chain(&head_state.visited_branches)
            .any(|own_branch| own_branch == branch),
    };
    Ok(stashes.iter().filter(is_own).map(|stash| stash.commit.clone()).collect())
}

/// Counts all stashes of the repository.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn count_stashes(git: &Git<'_>) -> Result<usize, Error> {
    Ok(list_stashes(git)?.len())
}

/// A stash of the repository.
struct Stash {
    commit: String,
    /// The commit that the stash was made on.
    parent: String,
    /// The message of the stash's reflog entry, such as `WIP on main: …`.
    subject: String,
}

/// Lists all stashes of the repository.
fn list_stashes(git: &Git<'_>) -> Result<Vec<Stash>, Error> {
    let action = "list the stashes";
    if !git.succeeds(action, &["rev-parse", "--verify", "--quiet", "refs/stash"])? {
        return Ok(Vec::new());
    }
    let log =
        git.output_text(action, &["log", "--walk-reflogs", "--format=%H%x09%P%x09%gs", "refs/stash", "--"])?;
    let parse = |line: &str| {
        let mut fields = line.splitn(3, '\t');
        let (commit, parents, subject) = (fields.next()?, fields.next()?, fields.next()?);
        let parent = parents.split(' ').next()?;
        Some(Stash { commit: commit.to_owned(), parent: parent.to_owned(), subject: subject.to_owned() })
    };
    Ok(log.lines().filter_map(parse).collect())
}

/// Returns the branch in `WIP on BRANCH: …` or `On BRANCH: …`. `None` for any other message.
fn stash_branch(subject: &str) -> Option<&str> {
    let description = subject.strip_prefix("WIP on ").or_else(|| subject.strip_prefix("On "))?;
    description.split_once(": ").map(|(branch, _)| branch)
}
