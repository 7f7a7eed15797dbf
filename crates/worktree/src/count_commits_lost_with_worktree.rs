//! Finds the commits that could be lost when a worktree is removed: commits of the worktree that
//! are in no other branch, and commits that only a reflog has.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::head_and_reflog_of_worktree::HeadState;
use crate::look_up_branches::{branch_exists, branch_ref};
use crate::temporary_refs_for_git_bundle::SAVED_REFS;
use crate::trash_branch_names::TRASH_BRANCHES;
use crate::worktree_record::WorktreeRecord;

/// Counts the commits that were made on the worktree's branches since the worktree was created, and
/// that no other branch has, local or remote. The worktree's branches are the branch that it was
/// created for and the branch that is checked out in it.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn count_unpushed(
    record: &WorktreeRecord,
    git: &Git<'_>,
    head_state: &HeadState,
) -> Result<u64, Error> {
    let own_branches = head_state.own_branches(record);
    let mut arguments: Vec<String> = ["rev-list", "--count", "--ignore-missing"].map(str::to_owned).into();
    for branch in &own_branches {
        arguments.extend(branch_exists(git, branch)?.then(|| branch_ref(branch)));
    }
    arguments.extend(["--not".to_owned(), record.base_commit.clone(), "--remotes".to_owned()]);
    arguments.extend(own_branches.iter().map(|branch| format!("--exclude={branch}")));
    arguments.extend(other_branches());
    git.output_number("count the commits", &arguments, b"")
}

/// Counts the unmerged commits of the branch that the worktree was created for: those that no
/// branch of another name has, local or remote. A remote branch of the same name does not count,
/// because it shows only that the branch was pushed. Commits from before the worktree's creation
/// are not counted.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn count_unmerged(record: &WorktreeRecord, git: &Git<'_>) -> Result<u64, Error> {
    let branch = &record.branch;
    let mut arguments: Vec<String> =
        ["rev-list", "--count", &branch_ref(branch), "--not", &record.base_commit].map(str::to_owned).into();
    arguments.extend([format!("--exclude=*/{branch}"), "--remotes".to_owned()]);
    arguments.push(format!("--exclude={branch}"));
    arguments.extend(other_branches());
    git.output_number("count the commits", &arguments, b"")
}

/// Arguments of git that select all local branches, except those of discarded worktrees.
fn other_branches() -> [String; 2] {
    [format!("--exclude={TRASH_BRANCHES}*"), "--branches".to_owned()]
}

/// If HEAD is detached, counts its commits that are in no branch and in no tag. The result is 0 if
/// HEAD is on a branch.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn count_detached(
    record: &WorktreeRecord,
    git: &Git<'_>,
    head_state: &HeadState,
) -> Result<u64, Error> {
    match (&head_state.head, &head_state.branch) {
        (Some(head), None) => count_unreferenced(record, git, std::slice::from_ref(head)),
        _ => Ok(0),
    }
}

/// Returns the commits that only the reflog of the worktree's HEAD or the worktree's own references
/// (`refs/worktree/`) have. Git removes both with the worktree.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn reflog_only_commits(
    record: &WorktreeRecord,
    git: &Git<'_>,
    head_state: &HeadState,
) -> Result<Vec<String>, Error> {
    let mut excluded_commits = branch_logs(git, &head_state.own_branches(record));
    excluded_commits.extend(head_state.head.clone());
    let mut commits = head_state.reflog.clone();
    commits.extend(worktree_refs(git)?);
    let arguments = [
        "rev-list",
        "--ignore-missing",
        "--stdin",
        "--not",
        &record.base_commit,
        "--branches",
        "--remotes",
        "--tags",
    ];
    let output =
        git.run("count the commits", &arguments, &rev_list_input(&commits, &excluded_commits), READ_TIMEOUT)?;
    let output = output.stdout_or_error("count the commits")?;
    Ok(String::from_utf8_lossy(&output).lines().map(str::to_owned).collect())
}

/// Counts the commits that only the reflog of the worktree's branch has. If the branch is deleted,
/// these commits are lost.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn count_only_in_branch_log(record: &WorktreeRecord, git: &Git<'_>) -> Result<u64, Error> {
    count_unreferenced(record, git, &branch_logs(git, std::slice::from_ref(&record.branch)))
}

/// Counts the commits that are reachable from `commits`, but not from a branch, a tag or the commit
/// at which the worktree was created.
fn count_unreferenced(record: &WorktreeRecord, git: &Git<'_>, commits: &[String]) -> Result<u64, Error> {
    if commits.is_empty() {
        return Ok(0);
    }
    let arguments = ["rev-list", "--count", "--ignore-missing", "--stdin", "--not", &record.base_commit];
    let arguments: Vec<&str> = arguments.into_iter().chain(["--branches", "--remotes", "--tags"]).collect();
    git.output_number("count the commits", &arguments, &rev_list_input(commits, &[]))
}

/// Returns the commits of a repository that are only in its reflogs.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn reflog_only_in_repository(git: &Git<'_>) -> Result<Vec<String>, Error> {
    let arguments = ["rev-list", "--ignore-missing", "--reflog", "--not", "--all"];
    Ok(lines(&git.output_of("count the commits", &arguments)?))
}

/// Returns the input of `git rev-list --stdin`: one line per commit. The commits in `excluded` have
/// a `^` before them, so that git leaves them out.
fn rev_list_input(commits: &[String], excluded: &[String]) -> Vec<u8> {
    let lines = commits.iter().map(|commit| format!("{commit}\n"));
    lines.chain(excluded.iter().map(|commit| format!("^{commit}\n"))).collect::<String>().into_bytes()
}

/// Returns the commits of the references that belong to this worktree only (`refs/worktree/`).
/// References that this crate has created are left out.
fn worktree_refs(git: &Git<'_>) -> Result<Vec<String>, Error> {
    let format = "--format=%(objectname) %(refname)";
    let output = git.output_text("list the references", &["for-each-ref", format, "refs/worktree/"])?;
    let refs = output.lines().filter_map(|line| line.split_once(' '));
    Ok(refs.filter(|(_, name)| !name.starts_with(SAVED_REFS)).map(|(id, _)| id.to_owned()).collect())
}

/// Returns all commits that `branches` have pointed to, according to their reflogs. A branch
/// without a reflog adds no commits.
fn branch_logs(git: &Git<'_>, branches: &[String]) -> Vec<String> {
    let reflog = |branch: &String| {
        let arguments = ["log", "--walk-reflogs", "--format=%H", &branch_ref(branch), "--"];
        git.output_of("check a branch", &arguments).unwrap_or_default()
    };
    branches.iter().flat_map(|branch| lines(&reflog(branch))).collect()
}

/// Splits output into lines.
fn lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect()
}
