//! Moves a branch from a repository into another one, through a bundle: a file with the commits
//! that the other repository lacks.
//!
//! The sender offers its newest commits. The receiver says which of them it has, and the bundle has
//! the commits after these. The receiver's branch only moves forward.

use crate::error::{Error, io_error};
use crate::git_command::{Git, READ_TIMEOUT, WRITE_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::look_up_branches::{branch_ref, branch_tip, check_branch_name, worktree_on_branch};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::Path;

/// How many of the newest commits of a branch are offered.
const OFFERED_COMMITS: &str = "--max-count=1000";

/// Prefix of the references that note which commits of a branch another host has. To git, these
/// references are remote branches. So the commits count as pushed, not as unsaved work.
const RECEIVED_REFS: &str = "refs/remotes/teamd-home/";

/// Returns the newest commits of a branch, its last commit first. `None` if the branch does not
/// exist. `repository` is the git directory that all worktrees of the repository share.
///
/// # Errors
///
/// [`Error::Git`], [`Error::NoGit`], [`Error::Timeout`], [`Error::Io`].
pub fn newest_commits(
    repository: &Path,
    branch: &str,
    environment: &GitEnvironment,
) -> Result<Option<Vec<String>>, Error> {
    let git = Git::with_git_dir(repository, environment);
    let Some(tip) = branch_tip(&git, branch)? else { return Ok(None) };
    let text = git.output_text("list the commits", &["rev-list", OFFERED_COMMITS, &tip, "--"])?;
    Ok(Some(text.lines().map(str::to_owned).collect()))
}

/// Writes a bundle with the branch to `file`. The commits `known`, and all commits before them, are
/// left out. This repository must have the commits `known`. The branch must have at least one
/// other commit, because git writes no empty bundle.
///
/// # Errors
///
/// As [`newest_commits`].
pub fn write_bundle(
    repository: &Path,
    branch: &str,
    known: &[String],
    file: &File,
    environment: &GitEnvironment,
) -> Result<(), Error> {
    let mut arguments = ["bundle", "create", "--quiet", "-", &branch_ref(branch)].map(str::to_owned).to_vec();
    arguments.extend(known.iter().map(|commit| format!("^{commit}")));
    Git::with_git_dir(repository, environment).run_to_file("bundle the branch", &arguments, file)
}

/// Notes at the sender that the receiver has `commit` and everything before it.
///
/// # Errors
///
/// As [`newest_commits`].
pub fn note_received(
    repository: &Path,
    branch: &str,
    commit: &str,
    environment: &GitEnvironment,
) -> Result<(), Error> {
    let (action, reference) = ("note the received commit", format!("{RECEIVED_REFS}{branch}"));
    Git::with_git_dir(repository, environment)
        .without_named_programs()?
        .output_of(action, &["update-ref", "--no-deref", &reference, commit])
        .map(drop)
}

/// Returns which of the commits `offered` this repository has. A commit counts only if it is
/// reachable from a reference.
///
/// # Errors
///
/// As [`newest_commits`].
pub fn known_commits(
    repository: &Path,
    offered: &[String],
    environment: &GitEnvironment,
) -> Result<Vec<String>, Error> {
    let git = Git::with_git_dir(repository, environment);
    let input: String =
        offered.iter().filter(|commit| is_commit_id(commit)).map(|commit| format!("{commit}\n")).collect();
    let lines = |arguments: &[&str], input: &str| {
        let output = git.run("look for commits", arguments, input.as_bytes(), READ_TIMEOUT)?;
        let bytes = output.stdout_or_error("look for commits")?;
        Ok::<Vec<String>, Error>(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    };
    let found = lines(&["cat-file", "--batch-check=%(objectname) %(objecttype)"], &input)?;
    let found: Vec<&str> = found.iter().filter_map(|line| line.strip_suffix(" commit")).collect();
    // An object without a reference may lack the commits before it.
    let input: String = found.iter().map(|commit| format!("{commit}\n")).collect();
    let unreferenced = match found.is_empty() {
        true => BTreeSet::new(),
        false => lines(&["rev-list", "--stdin", "--not", "--all"], &input)?.into_iter().collect(),
    };
    Ok(found.into_iter().filter(|commit| !unreferenced.contains(*commit)).map(str::to_owned).collect())
}

/// Adds the commits of a bundle to the repository, and moves `branch` in this repository forward to
/// `commit`, the last commit of `branch` at the sender. The branch is created if it does not exist.
/// `bundle` is `None` if the repository has the commit already.
///
/// # Errors
///
/// [`Error::NoSuchCommit`] if `commit` is not a commit id; [`Error::InvalidBranch`];
/// [`Error::BranchTaken`]; [`Error::OwnCommits`] if the branch has commits that `commit` lacks;
/// [`Error::Git`], also if the bundle is incomplete; the other errors of git commands. After an
/// error, no reference has changed.
pub fn receive_branch(
    repository: &Path,
    (branch, commit): (&str, &str),
    bundle: Option<&Path>,
    environment: &GitEnvironment,
) -> Result<(), Error> {
    let git = Git::with_git_dir(repository, environment).without_named_programs()?;
    check_branch_name(&git, branch)?;
    if !is_commit_id(commit) {
        return Err(Error::NoSuchCommit(commit.to_owned()));
    }
    if let Some(bundle) = bundle {
        add_objects(&git, bundle)?;
    }
    check_complete(&git, commit)?;
    let tip = branch_tip(&git, branch)?;
    if tip.as_deref() == Some(commit) {
        return Ok(());
    }
    if let Some(worktree) = worktree_on_branch(&git, branch)? {
        return Err(Error::BranchTaken { branch: branch.to_owned(), worktree });
    }
    let is_forward =
        |tip: &str| git.succeeds("compare commits", &["merge-base", "--is-ancestor", tip, commit]);
    if tip.as_deref().map(is_forward).transpose()? == Some(false) {
        return Err(Error::OwnCommits { branch: branch.to_owned(), repository: repository.to_owned() });
    }
    failpoint::hit("branch.receive");
    let (action, reference) = ("move the branch", branch_ref(branch));
    let message = "teamd: fetched from another host";
    let old = tip.as_deref().unwrap_or_default();
    let arguments = ["update-ref", "--no-deref", "--create-reflog", "-m", message, &reference, commit, old];
    git.output_of(action, &arguments).map(drop)
}

/// Whether the text is the full id of a commit, and so no option of git.
fn is_commit_id(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Stores the objects of a bundle. Until a reference has them, git may remove them again.
fn add_objects(git: &Git<'_>, bundle: &Path) -> Result<(), Error> {
    let arguments: [OsString; 3] = ["bundle".into(), "unbundle".into(), bundle.into()];
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let action = "unpack the bundle";
    git.run(action, &arguments, b"", WRITE_TIMEOUT)?.stdout_or_error(action).map(drop)
}

/// Checks that the repository has the commit and everything that belongs to it.
fn check_complete(git: &Git<'_>, commit: &str) -> Result<(), Error> {
    let action = "check the fetched commits";
    let arguments = ["rev-list", "--objects", "--quiet", "--not", "--all", "--not", commit, "--"];
    git.run(action, &arguments, b"", WRITE_TIMEOUT)?.stdout_or_error(action).map(drop)
}

/// Returns whether the repository has a commit.
///
/// # Errors
///
/// As [`newest_commits`].
pub fn has_commit(repository: &Path, commit: &str, environment: &GitEnvironment) -> Result<bool, Error> {
    let name = format!("{commit}^{{commit}}");
    let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
    Git::with_git_dir(repository, environment).succeeds("look for a commit", &arguments)
}

/// Creates a file without a name, for [`write_bundle`].
///
/// # Errors
///
/// [`Error::Io`].
pub fn unnamed_bundle_file() -> Result<File, Error> {
    platform::system().unnamed_file().map_err(io_error("create a file in", Path::new("memory")))
}
