//! Submodules of a linked worktree keep their repositories with it: what is in no remote of theirs goes with it.

use crate::error::{Error, io_error};
use crate::git_command::{Git, GitEnvironment, READ_TIMEOUT, path_from_bytes, split_nul};
use crate::record::read_git_link;
use crate::stash;
use crate::status::FileStatus;
use std::fs::read_dir;
use std::path::{Path, PathBuf};

/// The submodules that are checked out in a tree, and theirs; relative to it.
pub(crate) fn all_checked_out(tree: &Path, surroundings: &GitEnvironment) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(around) = left.pop() {
        let place = tree.join(&around);
        let here = direct_checked_out(&place, &Git::in_directory(&place, surroundings))?;
        let here: Vec<PathBuf> = here.into_iter().map(|name| around.join(name)).collect();
        left.extend(here.iter().cloned());
        found.extend(here);
    }
    Ok(found)
}

/// Those of one repository that are checked out; relative to it.
pub(crate) fn direct_checked_out(place: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    Ok(gitlinks(git)?.into_iter().filter(|name| place.join(name).join(".git").exists()).collect())
}

/// Where its submodules go, by its index.
pub(crate) fn gitlinks(git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let staged = git.output_of("list the submodules", &["ls-files", "--stage", "-z"])?;
    let links = split_nul(&staged).filter(|entry| entry.starts_with(b"160000 "));
    Ok(links.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1)).map(path_from_bytes).collect())
}

/// Whether it is a file of git's that names a directory below.
pub(crate) fn points_into(link: &Path, directory: &Path) -> bool {
    let Ok(to) = read_git_link(link, "gitdir: ") else { return false };
    let to = link.parent().unwrap_or(link).join(to).canonicalize();
    to.is_ok_and(|to| to.starts_with(directory))
}

/// Those with work of their own.
pub(crate) fn with_unsaved_work(
    tree: &Path,
    private: &Path,
    surroundings: &GitEnvironment,
) -> Result<Vec<PathBuf>, Error> {
    let all = all_checked_out(tree, surroundings)?;
    let mut worked = Vec::new();
    for at in all {
        let git = Git::in_directory(&tree.join(&at), surroundings);
        if has_unsaved_work(&tree.join(&at), &git)? {
            worked.push(at);
        }
    }
    for at in not_checked_out(tree, private, surroundings)? {
        if has_local_commits(&Git::with_git_dir(&at, surroundings))? {
            worked.push(at);
        }
    }
    Ok(worked)
}

/// The repositories of others: of those that the commit of now does not have, too.
pub(crate) fn not_checked_out(
    tree: &Path,
    private: &Path,
    surroundings: &GitEnvironment,
) -> Result<Vec<PathBuf>, Error> {
    let mut all = find_repositories(&private.join("modules"))?;
    for at in all_checked_out(tree, surroundings)? {
        let git = Git::in_directory(&tree.join(&at), surroundings);
        let own = PathBuf::from(git.output_line("find a submodule", &["rev-parse", "--absolute-git-dir"])?);
        all.retain(|other| *other != own);
    }
    Ok(all)
}

fn has_unsaved_work(at: &Path, git: &Git<'_>) -> Result<bool, Error> {
    Ok(!FileStatus::read(at, git)?.is_clean() || has_local_commits(git)?)
}

/// Commits that no remote has, stashes too.
fn has_local_commits(git: &Git<'_>) -> Result<bool, Error> {
    let verb = "look at a submodule";
    let arguments = ["rev-list", "--max-count=1", "--all", "HEAD", "--reflog", "--not", "--remotes"];
    let head = git.run(verb, &["rev-parse", "--verify", "--quiet", "HEAD"], b"", READ_TIMEOUT)?.is_success();
    Ok(head && !git.output_of(verb, &arguments)?.is_empty() || stash::count_stashes(git)? > 0)
}

/// Git directories below; their names may have slashes.
pub(crate) fn find_repositories(below: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut found, mut left) = (Vec::new(), vec![below.to_owned()]);
    while let Some(directory) = left.pop() {
        let entries = match read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(io_error("look into", &directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(io_error("look into", &directory))?;
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let at = entry.path();
            if at.join("HEAD").exists() {
                left.push(at.join("modules"));
                found.push(at.canonicalize().map_err(io_error("find", &at))?);
            } else {
                left.push(at);
            }
        }
    }
    Ok(found)
}
