//! The git repository around a directory, and the directory for the repository's worktrees.
//!
//! teamd's worktrees of a repository are in `REPO.worktrees`, a directory beside the repository. So
//! they are outside of the repository's working tree.

use crate::error::{Error, io_error};
use crate::git_command::Git;
use crate::git_environment::GitEnvironment;
use crate::git_output::path_from_bytes;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A repository, as found from a directory in it.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The git directory that all worktrees of the repository share, such as `REPO/.git`.
    pub(crate) common_git_dir: PathBuf,
    /// The directory for worktrees of teamd: `REPO.worktrees`. It need not exist.
    pub(crate) worktrees_dir: PathBuf,
    /// The directory that was passed to [`Repository::read`], as a path relative to the top of the
    /// working tree. Empty if that directory is not in a working tree.
    pub(crate) subdirectory: PathBuf,
}

/// A worktree as git lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedWorktree {
    /// Its absolute path.
    pub path: PathBuf,
    /// The branch that is checked out. `None` for a detached HEAD or a bare repository.
    pub branch: Option<String>,
    /// The commit that is checked out. `None` for a bare repository.
    pub commit: Option<String>,
}

impl Repository {
    /// Asks git for the repository that contains the directory `cwd`.
    ///
    /// # Errors
    ///
    /// [`Error::NoRepository`] if `cwd` is in no repository; the errors of [`Git::output_of`].
    pub(crate) fn read(cwd: &Path, environment: &GitEnvironment) -> Result<Repository, Error> {
        let git = Git::in_directory(cwd, environment);
        let action = "find the repository";
        let rev_parse = |option: &str| git.output_line(action, &["rev-parse", option]).map(PathBuf::from);
        let common_git_dir = rev_parse("--git-common-dir").map_err(|error| match error {
            Error::Git { stderr, .. } if stderr.contains("not a git repository") => {
                Error::NoRepository(cwd.to_owned())
            }
            error => error,
        })?;
        let common_git_dir = canonical(&cwd.join(common_git_dir))?;
        if rev_parse("--is-inside-work-tree")? != Path::new("true") {
            return Ok(Repository {
                worktrees_dir: worktrees_path(&main_directory(&common_git_dir)),
                common_git_dir,
                subdirectory: PathBuf::new(),
            });
        }
        let is_main = canonical(&cwd.join(rev_parse("--git-dir")?))? == common_git_dir;
        let top_level = if is_main {
            canonical(&rev_parse("--show-toplevel")?)?
        } else {
            main_directory(&common_git_dir)
        };
        let outermost = outermost_superproject(&top_level, environment)?;
        Ok(Repository {
            common_git_dir,
            worktrees_dir: worktrees_path(&outermost),
            subdirectory: rev_parse("--show-prefix")?,
        })
    }
}

/// Returns the worktrees of a repository, as git lists them. `repository` is the git directory that
/// all its worktrees share.
///
/// # Errors
///
/// [`Error::Git`], [`Error::NoGit`], [`Error::Timeout`] and [`Error::Io`].
pub fn list_worktrees(repository: &Path, environment: &GitEnvironment) -> Result<Vec<ListedWorktree>, Error> {
    let git = Git::with_git_dir(repository, environment);
    let output = git.output_of("list the worktrees", &["worktree", "list", "--porcelain", "-z"])?;
    let mut worktrees: Vec<ListedWorktree> = Vec::new();
    for line in output.split(|byte| *byte == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            worktrees.push(ListedWorktree { path: path_from_bytes(path), branch: None, commit: None });
        } else if let Some(worktree) = worktrees.last_mut() {
            let value = |key: &[u8]| Some(String::from_utf8_lossy(line.strip_prefix(key)?).into_owned());
            worktree.branch = value(b"branch refs/heads/").or_else(|| worktree.branch.take());
            worktree.commit = value(b"HEAD ").or_else(|| worktree.commit.take());
        }
    }
    Ok(worktrees)
}

/// Returns the git directory that all worktrees of a repository share. The repository is the one
/// that contains the directory `cwd`.
///
/// # Errors
///
/// [`Error::NoRepository`] if `cwd` is in no repository; the errors of git commands
/// ([`Error::Git`], [`Error::NoGit`], [`Error::ProgramMissing`], [`Error::Timeout`],
/// [`Error::Io`]).
pub fn common_git_dir(cwd: &Path, environment: &GitEnvironment) -> Result<PathBuf, Error> {
    Ok(Repository::read(cwd, environment)?.common_git_dir)
}

/// Returns the directory in which teamd creates worktrees of the repository that contains `cwd`.
/// The directory need not exist.
///
/// # Errors
///
/// [`Error::NoRepository`] if `cwd` is in no repository; the errors of git commands
/// ([`Error::Git`], [`Error::NoGit`], [`Error::ProgramMissing`], [`Error::Timeout`],
/// [`Error::Io`]).
pub fn worktrees_directory(cwd: &Path, environment: &GitEnvironment) -> Result<PathBuf, Error> {
    Ok(Repository::read(cwd, environment)?.worktrees_dir)
}

/// Returns the working tree of the outermost repository around the submodule `top_level`. If
/// `top_level` is not a submodule, returns `top_level` itself.
///
/// The worktrees of a submodule are put beside the outermost repository. Beside the submodule, they
/// would be in the working tree of the repository that contains the submodule.
fn outermost_superproject(top_level: &Path, environment: &GitEnvironment) -> Result<PathBuf, Error> {
    let mut top_level = top_level.to_owned();
    loop {
        let git = Git::in_directory(&top_level, environment);
        let superproject = git
            .output_line("find the superproject", &["rev-parse", "--show-superproject-working-tree"])
            .unwrap_or_default();
        if superproject.is_empty() {
            return Ok(top_level);
        }
        top_level = canonical(Path::new(&superproject))?;
    }
}

/// Returns the directory that users call the repository: the parent directory of `.git`, or the git
/// directory itself if the repository is bare.
fn main_directory(common_git_dir: &Path) -> PathBuf {
    match (common_git_dir.file_name(), common_git_dir.parent()) {
        (Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
        _ => common_git_dir.to_owned(),
    }
}

/// Returns `main_dir` with `.worktrees` appended. For `/` that is `/repository.worktrees`.
fn worktrees_path(main_dir: &Path) -> PathBuf {
    let mut name = OsString::from(main_dir.as_os_str());
    if main_dir.as_os_str().as_bytes().ends_with(b"/") {
        name.push("repository");
    }
    name.push(".worktrees");
    name.into()
}

/// Returns the absolute path without symbolic links.
fn canonical(path: &Path) -> Result<PathBuf, Error> {
    path.canonicalize().map_err(io_error("find", path))
}
