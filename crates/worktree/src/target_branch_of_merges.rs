//! The branch into which the branches of members are merged: where it starts, and how it moves.
//!
//! The branch is moved with `git update-ref`, and only while no worktree has it checked out. In a
//! worktree that has it checked out, the move would make unchanged files look changed.

use crate::error::Error;
use crate::git_command::{Git, READ_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::look_up_branches::{branch_ref, branch_tip, check_branch_name, check_not_blocked};
use crate::merge_method_and_reflog_entries::{MergeMethod, copied_commits};
use crate::repository_and_its_worktrees::list_worktrees;
use std::path::{Path, PathBuf};

/// Where a new branch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeStart<'a> {
    /// At the commit that is checked out in the repository's main worktree.
    MainWorktree,
    /// At this commit, as the user has named it, such as `origin/main`.
    Named(&'a str),
}

/// A branch that collects merges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeBranch {
    /// The git directory that all worktrees of the repository share.
    pub repository: PathBuf,
    /// The name of the branch.
    pub name: String,
    /// The commit of the branch. `None` if the branch does not exist yet.
    pub tip: Option<String>,
    /// The commit on which the next merge is made.
    pub next_base: String,
    /// The last commits of the branches that were rebased: `next_base` has copies of their commits.
    pub(crate) copied: Vec<String>,
}

impl MergeBranch {
    /// Looks up the branch `name`, which need not exist. Changes nothing.
    ///
    /// The first merge is made on the last commit of an existing branch. But if the start commit
    /// contains all commits of the branch, because a person has merged the branch, the first merge
    /// is made on the start commit.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidBranch`], [`Error::BranchBlocked`]; [`Error::SymbolicBranch`],
    /// [`Error::BranchTaken`] and [`Error::BranchInUse`]; [`Error::NoIdentity`];
    /// [`Error::NoSuchCommit`] if the start commit does not exist; [`Error::BranchDiverged`] if
    /// neither the existing branch nor the named start commit contains the other; the errors of git
    /// commands.
    pub fn open(
        repository: &Path,
        name: &str,
        start: MergeStart<'_>,
        environment: &GitEnvironment,
    ) -> Result<MergeBranch, Error> {
        let git = Git::with_git_dir(repository, environment);
        check_branch_name(&git, name)?;
        check_not_in_use(&git, repository, name, environment)?;
        let tip = branch_tip(&git, name)?;
        if tip.is_none() {
            check_not_blocked(&git, name)?;
        }
        if !git.succeeds("find the user's identity", &["var", "GIT_COMMITTER_IDENT"])? {
            return Err(Error::NoIdentity(repository.to_owned()));
        }
        let start_commit = commit_of(&git, start, repository)?;
        let is_ancestor = |first: &str, second: &str| {
            git.succeeds("compare commits", &["merge-base", "--is-ancestor", first, second])
        };
        let next_base = match (&tip, start) {
            (None, _) => start_commit,
            (Some(tip), _) if is_ancestor(tip, &start_commit)? => start_commit,
            (Some(tip), MergeStart::Named(start)) if !is_ancestor(&start_commit, tip)? => {
                return Err(Error::BranchDiverged { branch: name.to_owned(), start: start.to_owned() });
            }
            (Some(tip), _) => tip.clone(),
        };
        let copied = if tip.is_some() { copied_commits(&git, name, &next_base)? } else { Vec::new() };
        Ok(MergeBranch { repository: repository.to_owned(), name: name.to_owned(), tip, next_base, copied })
    }

    /// Moves the branch to `commit`, the result of a merge of `merged`, which is the last commit of
    /// another branch.
    ///
    /// # Errors
    ///
    /// The errors of [`MergeBranch::move_to_base`].
    pub fn advance(
        &mut self,
        commit: &str,
        method: MergeMethod,
        merged: &str,
        environment: &GitEnvironment,
    ) -> Result<(), Error> {
        self.move_to(commit, &method.reflog_message(merged), environment)?;
        if method == MergeMethod::Rebase {
            self.copied.push(merged.to_owned());
        }
        Ok(())
    }

    /// Moves the branch to the commit on which the next merge is made, which contains all commits
    /// of the branch. Creates the branch if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::SymbolicBranch`], [`Error::BranchTaken`] and [`Error::BranchInUse`]; [`Error::Git`] if another
    /// program has moved the branch meanwhile; the other errors of git commands.
    pub fn move_to_base(&mut self, environment: &GitEnvironment) -> Result<(), Error> {
        if self.tip.as_ref() == Some(&self.next_base) {
            return Ok(());
        }
        let start = self.next_base.clone();
        self.move_to(&start, "teamd: start", environment)
    }

    /// The name of the branch for commands that a person types. Unlike the plain name, git never
    /// takes it for a tag of the same name. The plain name if the branch does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`].
    pub fn unambiguous_name(&self, environment: &GitEnvironment) -> Result<String, Error> {
        let git = Git::with_git_dir(&self.repository, environment);
        let reference = branch_ref(&self.name);
        let arguments = ["rev-parse", "--verify", "--quiet", "--abbrev-ref=strict", &reference];
        Ok(git.text_if_success("check a branch", &arguments)?.unwrap_or_else(|| self.name.clone()))
    }

    fn move_to(
        &mut self,
        commit: &str,
        reflog_message: &str,
        environment: &GitEnvironment,
    ) -> Result<(), Error> {
        let git = Git::with_git_dir(&self.repository, environment).without_named_programs()?;
        check_not_in_use(&git, &self.repository, &self.name, environment)?;
        let (branch, old_commit) = (branch_ref(&self.name), self.tip.as_deref().unwrap_or_default());
        let action = format!("move the branch {}", self.name);
        failpoint::hit("merge.move_branch");
        let arguments = [
            "update-ref",
            "--no-deref",
            "--create-reflog",
            "-m",
            reflog_message,
            &branch,
            commit,
            old_commit,
        ];
        git.run(&action, &arguments, b"", READ_TIMEOUT)?.stdout_or_error(&action)?;
        failpoint::hit("merge.branch_moved");
        self.tip = Some(commit.to_owned());
        commit.clone_into(&mut self.next_base);
        Ok(())
    }
}

/// Checks that moving the branch affects no other branch and no worktree.
///
/// # Errors
///
/// [`Error::SymbolicBranch`]; [`Error::BranchTaken`], also if the branch has no commit yet;
/// [`Error::BranchInUse`], for example during a rebase of the branch; the errors of git commands.
fn check_not_in_use(
    git: &Git<'_>,
    repository: &Path,
    branch: &str,
    environment: &GitEnvironment,
) -> Result<(), Error> {
    let reference = branch_ref(branch);
    if git.succeeds("check a branch", &["symbolic-ref", "--quiet", &reference])? {
        return Err(Error::SymbolicBranch(branch.to_owned()));
    }
    let worktrees = list_worktrees(repository, environment)?;
    let taken = worktrees.into_iter().find(|worktree| worktree.branch.as_deref() == Some(branch));
    if let Some(worktree) = taken {
        return Err(Error::BranchTaken { branch: branch.to_owned(), worktree: worktree.path });
    }
    if branch_tip(git, branch)?.is_none() {
        return Ok(());
    }
    // Moves the branch to where it is. git refuses this if a rebase or bisect needs the branch.
    let arguments = ["branch", "--force", "--no-track", branch, &reference];
    match git.run("check a branch", &arguments, b"", READ_TIMEOUT)?.stdout_or_error("check a branch") {
        Ok(_) => Ok(()),
        Err(Error::Git { stderr, .. }) => {
            Err(Error::BranchInUse { branch: branch.to_owned(), reason: stderr })
        }
        Err(error) => Err(error),
    }
}

fn commit_of(git: &Git<'_>, start: MergeStart<'_>, repository: &Path) -> Result<String, Error> {
    let (name, error) = match start {
        MergeStart::MainWorktree => ("HEAD", Error::NoCommit(repository.to_owned())),
        MergeStart::Named(name) => (name, Error::NoSuchCommit(name.to_owned())),
    };
    let commit = format!("{name}^{{commit}}");
    let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
    git.text_if_success("find the commit to start at", &arguments)?.ok_or(error)
}
