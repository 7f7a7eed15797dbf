//! The repository around a directory, and where its worktrees of ours go: beside it, outside of its own tree.

use crate::error::{Error, io_error};
use crate::git_command::{Git, GitEnvironment, path_from_bytes};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A repository, seen from a directory in it.
#[derive(Debug)]
pub(crate) struct Repository {
    /// What its worktrees share.
    pub(crate) common_git_dir: PathBuf,
    /// `REPO.worktrees`.
    pub(crate) worktrees_dir: PathBuf,
    /// Where in its tree the directory is.
    pub(crate) subdirectory: PathBuf,
}

/// A worktree as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWorktree {
    /// Where.
    pub path: PathBuf,
    /// Which branch, where one is checked out.
    pub branch: Option<String>,
}

impl Repository {
    pub(crate) fn read(cwd: &Path, surroundings: &GitEnvironment) -> Result<Repository, Error> {
        let git = Git::in_directory(cwd, surroundings);
        let verb = "find the repository";
        let ask = |what: &str| git.output_line(verb, &["rev-parse", what]).map(PathBuf::from);
        let common = ask("--git-common-dir").map_err(|error| match error {
            Error::Git { stderr: said, .. } if said.contains("not a git repository") => {
                Error::NoRepository(cwd.to_owned())
            }
            error => error,
        })?;
        let common = canonical(&cwd.join(common))?;
        if ask("--is-inside-work-tree")? != Path::new("true") {
            return Ok(Repository {
                worktrees_dir: worktrees_path(&main_directory(&common)),
                common_git_dir: common,
                subdirectory: PathBuf::new(),
            });
        }
        let is_main = canonical(&cwd.join(ask("--git-dir")?))? == common;
        let own = if is_main { canonical(&ask("--show-toplevel")?)? } else { main_directory(&common) };
        let home = outermost_superproject(&own, surroundings)?;
        Ok(Repository {
            common_git_dir: common,
            worktrees_dir: worktrees_path(&home),
            subdirectory: ask("--show-prefix")?,
        })
    }
}

/// The worktrees of a repository, given by the directory that they share. Git's own list.
///
/// # Errors
/// As of every call of git.
pub fn list_worktrees(
    repository: &Path,
    surroundings: &GitEnvironment,
) -> Result<Vec<ListedWorktree>, Error> {
    let git = Git::with_git_dir(repository, surroundings);
    let all = git.output_of("list the worktrees", &["worktree", "list", "--porcelain", "-z"])?;
    let mut found: Vec<ListedWorktree> = Vec::new();
    for line in all.split(|byte| *byte == 0) {
        if let Some(at) = line.strip_prefix(b"worktree ") {
            found.push(ListedWorktree { path: path_from_bytes(at), branch: None });
        } else if let (Some(name), Some(last)) = (line.strip_prefix(b"branch refs/heads/"), found.last_mut())
        {
            last.branch = Some(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(found)
}

/// The directory that the worktrees of the repository around `cwd` share.
///
/// # Errors
/// [`Error::NoRepository`], and as of every call of git.
pub fn common_git_dir(cwd: &Path, surroundings: &GitEnvironment) -> Result<PathBuf, Error> {
    Ok(Repository::read(cwd, surroundings)?.common_git_dir)
}

/// The directory in which those of the repository around `cwd` lie that we made; it need not be there.
///
/// # Errors
/// [`Error::NoRepository`], and as of every call of git.
pub fn worktrees_directory(cwd: &Path, surroundings: &GitEnvironment) -> Result<PathBuf, Error> {
    Ok(Repository::read(cwd, surroundings)?.worktrees_dir)
}

/// A submodule's worktrees would lie in the tree around it.
fn outermost_superproject(top: &Path, surroundings: &GitEnvironment) -> Result<PathBuf, Error> {
    let mut top = top.to_owned();
    loop {
        let git = Git::in_directory(&top, surroundings);
        let around = git
            .output_line("find the repository around", &["rev-parse", "--show-superproject-working-tree"])
            .unwrap_or_default();
        if around.is_empty() {
            return Ok(top);
        }
        top = canonical(Path::new(&around))?;
    }
}

/// What people call the repository: the directory around `.git`, or a bare one itself.
fn main_directory(common: &Path) -> PathBuf {
    match (common.file_name(), common.parent()) {
        (Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
        _ => common.to_owned(),
    }
}

fn worktrees_path(home: &Path) -> PathBuf {
    let mut name = OsString::from(home.as_os_str());
    if home.as_os_str().as_bytes().ends_with(b"/") {
        name.push("repository");
    }
    name.push(".worktrees");
    name.into()
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(io_error("find", path))
}
