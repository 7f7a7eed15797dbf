//! Merges or rebases the commits of a branch in a merge worktree.
//!
//! HEAD of the worktree is detached, so no branch moves. Commits are made with the user's identity,
//! and without a signature: the program that signs is a setting that the repository can change.

use crate::error::{Error, io_error};
use crate::git_command::{Git, WRITE_TIMEOUT};
use crate::git_output::{GitOutput, path_from_bytes, split_nul};
use crate::merge_method_and_reflog_entries::MergeMethod;
use crate::target_branch_of_merges::MergeBranch;
use crate::temporary_worktree_for_merges::MergeWorktree;
use std::ffi::OsString;
use std::path::PathBuf;

/// Settings for merges and rebases. The worktrees of a repository share its branches, configuration
/// and objects. With these settings git only adds objects: it moves no branch, runs no program and
/// asks nothing.
const SETTINGS: [(&str, &str); 13] = [
    ("commit.gpgSign", "false"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("merge.autoStash", "false"),
    ("merge.verifySignatures", "false"),
    ("notes.rewrite.rebase", "false"),
    ("rebase.backend", "merge"),
    ("rebase.rebaseMerges", "false"),
    ("rebase.updateRefs", "false"),
    ("rerere.enabled", "false"),
    ("submodule.recurse", "false"),
];

/// What a merge or rebase has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The result has all commits already.
    NothingToMerge,
    /// HEAD of the merge worktree is the new result.
    Merged {
        /// The new result.
        commit: String,
        /// How many commits it got, without the merge commit.
        commits: usize,
    },
    /// Git cannot merge these files. Their paths are relative to the top of the working tree.
    Conflict(Vec<PathBuf>),
    /// Git cannot merge the branch at all, for example because the histories have no common commit.
    /// The value is what git says.
    Impossible(String),
}

impl MergeWorktree {
    /// Merges or rebases a branch onto `target.next_base`, the result of the earlier merges.
    /// `branch_commit` is the last commit of the branch, and `message` the message of the merge
    /// commit. First resets the working tree to `target.next_base` and removes untracked files,
    /// except ignored ones.
    ///
    /// # Errors
    ///
    /// The errors of git commands. The worktree can be used again after an error.
    pub fn merge(
        &self,
        target: &MergeBranch,
        branch_commit: &str,
        method: MergeMethod,
        message: &str,
    ) -> Result<MergeOutcome, Error> {
        let (git, result) = (self.git()?, target.next_base.as_str());
        let commits = commits_without(&git, result, branch_commit)?;
        let upstream = match method {
            MergeMethod::Merge => result.to_owned(),
            MergeMethod::Rebase => rebase_upstream(&git, target, branch_commit, &commits)?,
        };
        if commits.is_empty() || commits_without(&git, &upstream, branch_commit)?.is_empty() {
            return Ok(MergeOutcome::NothingToMerge);
        }
        self.reset(&git, result)?;
        let is_descendant =
            git.succeeds("compare commits", &["merge-base", "--is-ancestor", result, branch_commit])?;
        failpoint::hit_before_call("merge.commit").map_err(io_error("write into", self.path()))?;
        let output = match method {
            MergeMethod::Merge => merge(&git, branch_commit, message)?,
            // The member's branch contains the target branch, so no rebase is needed. A rebase
            // would also drop the member's merge commits, which may contain resolved conflicts.
            MergeMethod::Rebase if is_descendant => check_out(&git, branch_commit)?,
            MergeMethod::Rebase => rebase(&git, result, &upstream, branch_commit)?,
        };
        if output.is_success() {
            return merged(&git, result, commits.len(), method);
        }
        match conflicting_files(&git)? {
            files if files.is_empty() => match output.to_error("merge") {
                Error::Git { stderr, .. } if is_refusal(&stderr) => Ok(MergeOutcome::Impossible(stderr)),
                error => Err(error),
            },
            files => Ok(MergeOutcome::Conflict(files)),
        }
    }

    /// Returns a git in the worktree that runs no programs of the repository.
    fn git(&self) -> Result<Git<'_>, Error> {
        let git = Git::in_directory(self.path(), &self.environment);
        let settings = SETTINGS.map(|(key, value)| (OsString::from(key), OsString::from(value)));
        let overrides = git.named_program_overrides()?.into_iter().chain(settings).collect();
        Ok(git.with_overrides(overrides))
    }

    /// Ends a merge or rebase in progress, and checks out `commit`.
    fn reset(&self, git: &Git<'_>, commit: &str) -> Result<(), Error> {
        // This fails if no rebase is in progress.
        git.succeeds("end a rebase", &["rebase", "--quit"])?;
        check_out(git, commit)?.stdout_or_error("check out the result")?;
        let action = "remove the files of the last test";
        git.run(action, &["clean", "-ffd", "--quiet"], b"", WRITE_TIMEOUT)?.stdout_or_error(action).map(drop)
    }
}

fn check_out(git: &Git<'_>, commit: &str) -> Result<GitOutput, Error> {
    let arguments = ["checkout", "--quiet", "--force", "--detach", commit, "--"];
    git.run("check out the result", &arguments, b"", WRITE_TIMEOUT)
}

fn merge(git: &Git<'_>, commit: &str, message: &str) -> Result<GitOutput, Error> {
    let arguments = [
        &["merge", "--quiet", "--no-ff", "--no-edit", "--no-verify", "--no-stat", "--no-gpg-sign"][..],
        &["--no-verify-signatures", "--strategy=ort", "-m", message, commit],
    ];
    git.run("merge", &arguments.concat(), b"", WRITE_TIMEOUT)
}

/// Copies the commits that `commit` has and `upstream` lacks onto `result`.
fn rebase(git: &Git<'_>, result: &str, upstream: &str, commit: &str) -> Result<GitOutput, Error> {
    let arguments = [
        &["rebase", "--quiet", "--merge", "--no-verify", "--no-stat", "--no-gpg-sign"][..],
        &["--no-autostash", "--empty=drop", "--onto", result, upstream, commit],
    ];
    git.run("rebase", &arguments.concat(), b"", WRITE_TIMEOUT)
}

/// Returns the upstream for `git rebase`: a commit whose whole history git leaves out of the
/// rebase. Usually this is `target.next_base`, the result of the earlier merges.
///
/// An earlier rebase may have copied some of `commits`, which are to be rebased, onto the target
/// branch. Git does not always recognize copies, and would apply their changes again, with
/// conflicts. So in this case the upstream is a new commit that has both `target.next_base` and the
/// copied commits in its history. No branch ever contains this new commit.
fn rebase_upstream(
    git: &Git<'_>,
    target: &MergeBranch,
    branch_commit: &str,
    commits: &[String],
) -> Result<String, Error> {
    let mut copied = Vec::new();
    for tip in &target.copied {
        if shares_commits(git, tip, branch_commit, commits)? {
            copied.push(tip);
        }
    }
    if copied.is_empty() {
        return Ok(target.next_base.clone());
    }
    let tree = format!("{}^{{tree}}", target.next_base);
    let mut arguments = vec!["commit-tree", "--no-gpg-sign", "-m", "commits that were copied", &tree];
    for parent in std::iter::once(&target.next_base).chain(copied) {
        arguments.extend(["-p", parent]);
    }
    git.output_text("leave out the commits that were copied", &arguments)
}

/// Whether one of `commits` is in the history of the commit `tip`. False if the commit `tip` does
/// not exist any more. `commits` must be commits of the branch whose last commit is
/// `branch_commit`.
fn shares_commits(git: &Git<'_>, tip: &str, branch_commit: &str, commits: &[String]) -> Result<bool, Error> {
    if !git.succeeds("find a commit", &["cat-file", "-e", &format!("{tip}^{{commit}}")])? {
        return Ok(false);
    }
    let lacking = commits_without(git, tip, branch_commit)?;
    Ok(commits.iter().any(|commit| !lacking.contains(commit)))
}

/// Whether git refuses to merge a branch at all, unlike after an error of the machine.
fn is_refusal(stderr: &str) -> bool {
    ["unrelated histories", "would be overwritten"].iter().any(|reason| stderr.contains(reason))
}

/// The outcome of a merge or rebase that succeeded. `result` is the commit onto which the branch
/// was merged, and `commits` the number of commits that the branch had and `result` lacked.
fn merged(git: &Git<'_>, result: &str, commits: usize, method: MergeMethod) -> Result<MergeOutcome, Error> {
    let commit = git.output_text("find the merged commit", &["rev-parse", "--verify", "HEAD"])?;
    if commit == result {
        return Ok(MergeOutcome::NothingToMerge);
    }
    let commits = match method {
        MergeMethod::Merge => commits,
        MergeMethod::Rebase => commits_without(git, result, &commit)?.len(),
    };
    Ok(MergeOutcome::Merged { commit, commits })
}

/// The commits that `commit` has and `result` lacks.
fn commits_without(git: &Git<'_>, result: &str, commit: &str) -> Result<Vec<String>, Error> {
    let text = git.output_text("list the commits", &["rev-list", &format!("{result}..{commit}"), "--"])?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// The files that git could not merge, sorted by path.
fn conflicting_files(git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let arguments =
        ["diff", "--name-only", "--diff-filter=U", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"];
    let output = git.output_of("list the conflicts", &arguments)?;
    Ok(split_nul(&output).map(path_from_bytes).collect())
}
