//! Submodules of a linked worktree keep their repositories with it: what is in no remote of theirs goes with it.

use crate::error::{Error, io};
use crate::git::{Git, LOOK, Surroundings, entries, path};
use crate::stash;
use crate::status::Status;
use crate::tree::named;
use std::fs::read_dir;
use std::path::{Path, PathBuf};

/// The submodules that are checked out in a tree, and theirs; relative to it.
pub(crate) fn checked_out(tree: &Path, surroundings: &Surroundings) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(around) = left.pop() {
        let place = tree.join(&around);
        let here = here(&place, &Git::within(&place, surroundings))?;
        let here: Vec<PathBuf> = here.into_iter().map(|name| around.join(name)).collect();
        left.extend(here.iter().cloned());
        found.extend(here);
    }
    Ok(found)
}

/// Those of one repository that are checked out; relative to it.
pub(crate) fn here(place: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    Ok(links(git)?.into_iter().filter(|name| place.join(name).join(".git").exists()).collect())
}

/// Where its submodules go, by its index.
pub(crate) fn links(git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let staged = git.read("list the submodules", &["ls-files", "--stage", "-z"])?;
    let links = entries(&staged).filter(|entry| entry.starts_with(b"160000 "));
    Ok(links.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1)).map(path).collect())
}

/// Whether it is a file of git's that names a directory below.
pub(crate) fn leads_below(link: &Path, directory: &Path) -> bool {
    let Ok(to) = named(link, "gitdir: ") else { return false };
    let to = link.parent().unwrap_or(link).join(to).canonicalize();
    to.is_ok_and(|to| to.starts_with(directory))
}

/// Those with work of their own.
pub(crate) fn with_work(
    tree: &Path,
    private: &Path,
    surroundings: &Surroundings,
) -> Result<Vec<PathBuf>, Error> {
    let all = checked_out(tree, surroundings)?;
    let mut worked = Vec::new();
    for at in all {
        let git = Git::within(&tree.join(&at), surroundings);
        if has_work(&tree.join(&at), &git)? {
            worked.push(at);
        }
    }
    for at in not_checked_out(tree, private, surroundings)? {
        if has_commits(&Git::of_repository(&at, surroundings))? {
            worked.push(at);
        }
    }
    Ok(worked)
}

/// The repositories of others: of those that the commit of now does not have, too.
pub(crate) fn not_checked_out(
    tree: &Path,
    private: &Path,
    surroundings: &Surroundings,
) -> Result<Vec<PathBuf>, Error> {
    let mut all = repositories(&private.join("modules"))?;
    for at in checked_out(tree, surroundings)? {
        let git = Git::within(&tree.join(&at), surroundings);
        let own = PathBuf::from(git.line("find a submodule", &["rev-parse", "--absolute-git-dir"])?);
        all.retain(|other| *other != own);
    }
    Ok(all)
}

fn has_work(at: &Path, git: &Git<'_>) -> Result<bool, Error> {
    Ok(!Status::of(at, git)?.is_clean() || has_commits(git)?)
}

/// Commits that no remote has, stashes too.
fn has_commits(git: &Git<'_>) -> Result<bool, Error> {
    let verb = "look at a submodule";
    let arguments = ["rev-list", "--max-count=1", "--all", "HEAD", "--reflog", "--not", "--remotes"];
    let head = git.run(verb, &["rev-parse", "--verify", "--quiet", "HEAD"], b"", LOOK)?.is_yes();
    Ok(head && !git.read(verb, &arguments)?.is_empty() || stash::count(git)? > 0)
}

/// Git directories below; their names may have slashes.
pub(crate) fn repositories(below: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut found, mut left) = (Vec::new(), vec![below.to_owned()]);
    while let Some(directory) = left.pop() {
        let entries = match read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(io("look into", &directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(io("look into", &directory))?;
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let at = entry.path();
            if at.join("HEAD").exists() {
                left.push(at.join("modules"));
                found.push(at.canonicalize().map_err(io("find", &at))?);
            } else {
                left.push(at);
            }
        }
    }
    Ok(found)
}
