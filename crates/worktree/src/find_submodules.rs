//! Finds the submodules of a worktree, both those that are checked out and those that are not.
//!
//! A worktree that `git worktree add` has created has its own copies of the submodules'
//! repositories. Git stores these copies in `modules/`, below the worktree's private git directory.

use crate::error::{Error, io_error};
use crate::git_command::Git;
use crate::git_output::{path_from_bytes, split_nul};
use crate::worktree_handle::Worktree;
use crate::worktree_record::read_git_link;
use std::fs::read_dir;
use std::path::{Path, PathBuf};

impl Worktree<'_> {
    /// Returns the submodules that are checked out, including submodules of submodules. Paths are
    /// relative to the worktree.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn checked_out_submodules(&self) -> Result<Vec<PathBuf>, Error> {
        let mut submodules = Vec::new();
        let mut pending = vec![PathBuf::new()];
        while let Some(parent) = pending.pop() {
            let children = direct_checked_out(&self.path().join(&parent), &self.git_in(&parent))?;
            let children: Vec<PathBuf> = children.into_iter().map(|name| parent.join(name)).collect();
            pending.extend(children.iter().cloned());
            submodules.extend(children);
        }
        Ok(submodules)
    }

    /// Returns the repositories of submodules that are not checked out now. For example, the
    /// worktree may have been on another branch, and only that branch has the submodule.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn unused_repositories(&self) -> Result<Vec<PathBuf>, Error> {
        let mut repositories = find_repositories(&self.git_dir.join("modules"))?;
        for path in self.checked_out_submodules()? {
            let arguments = ["rev-parse", "--absolute-git-dir"];
            let git_dir = PathBuf::from(self.git_in(&path).output_line("find a submodule", &arguments)?);
            repositories.retain(|repository| *repository != git_dir);
        }
        Ok(repositories)
    }

    /// Whether the worktree has submodules: either the index contains one, or the worktree's
    /// private git directory still contains the repository of a former submodule.
    ///
    /// # Errors
    ///
    /// The errors of [`Git::output_of`].
    pub(crate) fn has_submodules(&self) -> Result<bool, Error> {
        let has_repositories = || find_repositories(&self.git_dir.join("modules"));
        Ok(!gitlinks(&self.git())?.is_empty() || !has_repositories()?.is_empty())
    }
}

/// Returns the submodules of one repository that are checked out, without submodules of submodules.
/// Paths are relative to `directory`, the repository's working tree.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn direct_checked_out(directory: &Path, git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    Ok(gitlinks(git)?.into_iter().filter(|name| directory.join(name).join(".git").exists()).collect())
}

/// Returns the paths of all submodules in the index.
///
/// # Errors
///
/// The errors of [`Git::output_of`].
pub(crate) fn gitlinks(git: &Git<'_>) -> Result<Vec<PathBuf>, Error> {
    let staged = git.output_of("list the submodules", &["ls-files", "--stage", "-z"])?;
    let links = split_nul(&staged).filter(|entry| entry.starts_with(b"160000 "));
    Ok(links.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1)).map(path_from_bytes).collect())
}

/// Whether `link` is a `.git` file that names a directory below `directory`.
pub(crate) fn points_into(link: &Path, directory: &Path) -> bool {
    let Ok(target) = read_git_link(link, "gitdir: ") else { return false };
    let target = link.parent().unwrap_or(link).join(target).canonicalize();
    target.is_ok_and(|target| target.starts_with(directory))
}

/// Returns the git directories of submodules below `modules_dir`, including submodules of
/// submodules. The name of a submodule may contain slashes, so a git directory may be at any depth.
///
/// # Errors
///
/// [`Error::Io`].
fn find_repositories(modules_dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let (mut repositories, mut pending) = (Vec::new(), vec![modules_dir.to_owned()]);
    while let Some(directory) = pending.pop() {
        let entries = match read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(io_error("list", &directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(io_error("list", &directory))?;
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            if path.join("HEAD").exists() {
                pending.push(path.join("modules"));
                repositories.push(path.canonicalize().map_err(io_error("find", &path))?);
            } else {
                pending.push(path);
            }
        }
    }
    Ok(repositories)
}
