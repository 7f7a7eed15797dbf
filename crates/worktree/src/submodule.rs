//! Submodules of a linked worktree keep their repositories with it: what is in no remote of theirs goes with it.

use crate::error::{Error, io};
use crate::git::{Git, LOOK, Surroundings, entries, path};
use crate::stash;
use crate::status::Status;
use std::fs::read_dir;
use std::path::{Path, PathBuf};

/// The submodules that are checked out in a tree, and theirs; relative to it.
pub(crate) fn checked_out(tree: &Path, surroundings: &Surroundings) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut left = vec![PathBuf::new()];
    while let Some(around) = left.pop() {
        let git = Git::within(&tree.join(&around), surroundings);
        let staged = git.read("list the submodules", &["ls-files", "--stage", "-z"])?;
        let links = entries(&staged).filter(|entry| entry.starts_with(b"160000 "));
        let names = links.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1)).map(path);
        let here = names.map(|name| around.join(name)).filter(|at| tree.join(at).join(".git").exists());
        let here: Vec<PathBuf> = here.collect();
        left.extend(here.iter().cloned());
        found.extend(here);
    }
    Ok(found)
}

/// Those with work of their own.
pub(crate) fn with_work(
    tree: &Path,
    private: &Path,
    surroundings: &Surroundings,
) -> Result<Vec<PathBuf>, Error> {
    let all = checked_out(tree, surroundings)?;
    let mut worked = Vec::new();
    let mut known = Vec::new();
    for at in all {
        let git = Git::within(&tree.join(&at), surroundings);
        known.push(PathBuf::from(git.line("find a submodule", &["rev-parse", "--absolute-git-dir"])?));
        if has_work(&tree.join(&at), &git)? {
            worked.push(at);
        }
    }
    // Of a submodule that the commit of now does not have.
    let others = repositories(&private.join("modules"))?.into_iter().filter(|at| !known.contains(at));
    for at in others {
        if has_commits(&Git::of_repository(&at, surroundings))? {
            worked.push(at);
        }
    }
    Ok(worked)
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
