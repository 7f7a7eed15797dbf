//! The record of a worktree, and checks that the recorded worktree is still at its path.
//!
//! The checks only read a few files and do not run git, so they can be used where the program must
//! not wait.

use crate::error::{Error, io_error};
use crate::git_command::Git;
use crate::git_environment::GitEnvironment;
use serde::{Deserialize, Serialize};
use std::fs::{read_dir, read_to_string, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What the caller stores about a worktree that teamd creates. The record is stored after the
/// worktree's empty directory is created, and before git fills the directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeRecord {
    /// Absolute path of the worktree, without symbolic links.
    pub path: PathBuf,
    /// The branch that the worktree was created for.
    pub branch: String,
    /// Whether the branch was created for the worktree. Otherwise it existed before.
    pub branch_created: bool,
    /// The git directory that all worktrees of the repository share, such as `REPO/.git`. The path
    /// is absolute and contains no symbolic links.
    pub common_git_dir: PathBuf,
    /// The commit that was checked out when the worktree was created.
    pub base_commit: String,
    /// Inode number of the worktree's directory, by which another directory at the same path is
    /// recognized. The device number is not stored: on btrfs, overlay file systems and NFS it may
    /// change at a reboot.
    pub inode: u64,
}

/// What exists at the path of a worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeState {
    /// Nothing exists at the path.
    Missing,
    /// The recorded directory is at the path, and git has not filled it yet.
    Empty,
    /// The recorded worktree is at its path. The value is the worktree's private git directory,
    /// such as `REPO/.git/worktrees/NAME`.
    Present(PathBuf),
}

impl WorktreeRecord {
    /// Checks what exists at the worktree's path. Does not check whether the worktree is still on
    /// its branch: [`WorktreeRecord::is_on_its_branch`] does.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] if something other than the recorded worktree is at the path;
    /// [`Error::Io`].
    pub fn state(&self) -> Result<WorktreeState, Error> {
        let metadata = match symlink_metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(WorktreeState::Missing),
            metadata => metadata.map_err(io_error("check", &self.path))?,
        };
        if !metadata.is_dir() || metadata.ino() != self.inode {
            return Err(self.not_recorded("it is not the directory that was created for it"));
        }
        if self.path.canonicalize().map_err(io_error("check", &self.path))? != self.path {
            return Err(self.not_recorded("its path contains a symbolic link"));
        }
        let link = self.path.join(".git");
        match symlink_metadata(&link) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.state_without_git(),
            Err(error) => Err(io_error("check", &link)(error)),
            Ok(metadata) if metadata.is_file() => self.check_links(&link).map(WorktreeState::Present),
            Ok(_) => Err(self.not_recorded("its .git is not a file")),
        }
    }

    /// Returns the git directory that only this worktree uses, such as `REPO/.git/worktrees/NAME`.
    ///
    /// # Errors
    ///
    /// The errors of [`WorktreeRecord::state`]; also [`Error::NotRecorded`] if the worktree's
    /// directory is missing or empty.
    pub(crate) fn private_git_dir(&self) -> Result<PathBuf, Error> {
        match self.state()? {
            WorktreeState::Present(git_dir) => Ok(git_dir),
            WorktreeState::Missing => Err(self.not_recorded("it does not exist")),
            WorktreeState::Empty => Err(self.not_recorded("the directory is empty")),
        }
    }

    /// Whether the worktree is on the branch that it was created for.
    ///
    /// The check reads the file `HEAD` in the worktree's private git directory, such as
    /// `REPO/.git/worktrees/NAME`. In a repository with the reference format `reftable` this file
    /// does not name the branch, and the result is always true.
    pub fn is_on_its_branch(&self) -> bool {
        let head = self.private_git_dir().ok().and_then(|git_dir| read_to_string(git_dir.join("HEAD")).ok());
        let name = head.as_deref().and_then(|head| head.trim_end().strip_prefix("ref: refs/heads/"));
        name.is_some_and(|name| name == self.branch || name == ".invalid")
    }

    /// Returns git with the worktree as its working directory.
    pub(crate) fn git<'a>(&self, environment: &'a GitEnvironment) -> Git<'a> {
        Git::in_directory(&self.path, environment)
    }

    /// Returns the state of a directory without `.git`, which must be empty.
    fn state_without_git(&self) -> Result<WorktreeState, Error> {
        let mut entries = read_dir(&self.path).map_err(io_error("list", &self.path))?;
        if entries.next().is_none() {
            return Ok(WorktreeState::Empty);
        }
        Err(self.not_recorded("it is not a worktree any more"))
    }

    /// Checks that the worktree and its private git directory, such as `REPO/.git/worktrees/NAME`,
    /// name each other. The worktree does so in its file `.git`, and the git directory in its file
    /// `gitdir`. Returns the private git directory.
    fn check_links(&self, link: &Path) -> Result<PathBuf, Error> {
        let target = read_git_link(link, "gitdir: ")?;
        let git_dir = self
            .path
            .join(target)
            .canonicalize()
            .map_err(|_| self.not_recorded("its .git names a missing directory"))?;
        if git_dir.parent() != Some(&self.common_git_dir.join("worktrees")) {
            return Err(self.not_recorded("it belongs to another repository"));
        }
        let back = git_dir.join(read_git_link(&git_dir.join("gitdir"), "")?);
        let is_link = |path: &Path| path.canonicalize().ok() == link.canonicalize().ok();
        if is_link(&back) {
            Ok(git_dir)
        } else {
            Err(self.not_recorded("its repository lists it at another path"))
        }
    }

    /// Returns the error for a path that is not the recorded worktree. `reason` is a clause.
    pub(crate) fn not_recorded(&self, reason: &'static str) -> Error {
        Error::NotRecorded { path: self.path.clone(), reason }
    }
}

/// Reads a path from a file of git. For example, the file `.git` of a worktree contains the prefix
/// `gitdir: ` and a path. The result is empty if the file does not begin with `prefix`.
pub(crate) fn read_git_link(file: &Path, prefix: &str) -> Result<PathBuf, Error> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = std::fs::read(file).map_err(io_error("read", file))?;
    let rest = bytes.strip_prefix(prefix.as_bytes()).unwrap_or_default();
    let rest = rest.strip_suffix(b"\n").unwrap_or(rest);
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(rest)))
}
