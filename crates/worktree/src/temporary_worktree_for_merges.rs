//! A temporary worktree in which branches are merged. Its HEAD is detached.
//!
//! The caller stores the record of the worktree before git fills the directory. If the caller is
//! killed, the next merge removes the recorded worktree. Only a merge, and the command that tests
//! the merge, write files in this worktree. So it is removed without a check for unsaved work.

use crate::add_worktree::lock_repository;
use crate::end_processes_of_worktree_command::end_processes_with_variable;
use crate::error::{Error, io_error};
use crate::git_command::{Git, WRITE_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::mount_points::check_no_mount_point;
use crate::propose_worktree::create_directory;
use crate::repository_and_its_worktrees::list_worktrees;
use crate::target_branch_of_merges::MergeBranch;
use crate::worktree_record::read_git_link;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{remove_dir, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An environment variable of all processes that a merge starts in its worktree. Its value is the
/// path of the worktree, so these processes can be found and ended.
pub const MERGE_WORKTREE_VARIABLE: &str = "TEAMD_MERGE_WORKTREE";

/// What the caller stores about a merge worktree, before git fills its directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeWorktreeRecord {
    /// Absolute path of the worktree, without symbolic links.
    pub path: PathBuf,
    /// The git directory that all worktrees of the repository share.
    pub common_git_dir: PathBuf,
    /// Inode number of the worktree's directory.
    pub inode: u64,
}

/// A filled merge worktree.
#[derive(Debug)]
pub struct MergeWorktree {
    pub(crate) record: MergeWorktreeRecord,
    /// The environment of git in the worktree, with [`MERGE_WORKTREE_VARIABLE`].
    pub(crate) environment: GitEnvironment,
}

/// Creates an empty directory in `directory`, for a worktree in which other branches are merged
/// into `branch`. The new directory gets the name `name`, followed by a number if this name is
/// taken. The caller must store the returned record before it calls [`MergeWorktree::add`].
///
/// # Errors
///
/// [`Error::UntrustedDirectory`], [`Error::PathNotUtf8`], [`Error::Io`].
pub fn propose_merge_worktree(
    directory: &Path,
    name: &str,
    branch: &MergeBranch,
) -> Result<MergeWorktreeRecord, Error> {
    let path = create_directory(directory, name)?;
    path.to_str().ok_or_else(|| Error::PathNotUtf8(path.clone()))?;
    let inode = symlink_metadata(&path).map_err(io_error("check", &path))?.ino();
    Ok(MergeWorktreeRecord { path, common_git_dir: branch.repository.clone(), inode })
}

impl MergeWorktree {
    /// Lets git fill the worktree of the record with the files of `commit`. The worktree's HEAD is
    /// detached. No hook and no filter of the repository runs.
    ///
    /// # Errors
    ///
    /// [`Error::RepositoryBusy`], [`Error::Io`]; the errors of git commands.
    pub fn add(
        record: MergeWorktreeRecord,
        commit: &str,
        environment: &GitEnvironment,
    ) -> Result<MergeWorktree, Error> {
        let environment = environment.with_variable(MERGE_WORKTREE_VARIABLE, record.path.as_os_str());
        let lock = lock_repository(&record.common_git_dir, WRITE_TIMEOUT)?;
        let git = Git::with_git_dir(&record.common_git_dir, &environment).without_named_programs()?;
        let options = ["worktree", "add", "--quiet", "--detach", "--"].map(OsStr::new);
        let arguments = [&options[..], &[record.path.as_os_str(), OsStr::new(commit)]].concat();
        let action = "create the worktree for merges";
        git.run(action, &arguments, b"", WRITE_TIMEOUT)?.stdout_or_error(action)?;
        drop(lock);
        read_git_link(&record.path.join(".git"), "gitdir: ")?;
        Ok(MergeWorktree { record, environment })
    }

    /// The absolute path of the worktree.
    pub fn path(&self) -> &Path {
        &self.record.path
    }
}

impl MergeWorktreeRecord {
    /// Removes a merge worktree with all files in it, whether or not git has filled it completely.
    /// First ends all processes that run in it. If another directory is at this path now, that
    /// directory stays.
    ///
    /// # Errors
    ///
    /// [`Error::MountPoint`]; [`Error::Io`]; the errors of git commands.
    pub fn remove(&self, environment: &GitEnvironment) -> Result<(), Error> {
        end_processes_in_merge_worktree(&self.path)?;
        if symlink_metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            check_no_mount_point(&self.path)?;
            remove_tree(&self.path)?;
        }
        failpoint::hit("merge.worktree_removed");
        // Now git forgets the worktree, as it does for one whose directory a user has removed.
        let is_listed = || -> Result<bool, Error> {
            if !self.common_git_dir.is_dir() {
                return Ok(false);
            }
            let worktrees = list_worktrees(&self.common_git_dir, environment)?;
            Ok(worktrees.iter().any(|worktree| worktree.path == self.path))
        };
        if symlink_metadata(&self.path).is_err() && is_listed()? {
            let git = Git::with_git_dir(&self.common_git_dir, environment).without_named_programs()?;
            let options = ["worktree", "remove", "--force", "--force", "--"].map(OsStr::new);
            let arguments = [&options[..], &[self.path.as_os_str()]].concat();
            git.output_of("remove the worktree for merges", &arguments)?;
        }
        self.path.parent().map(remove_dir);
        Ok(())
    }
}

/// Removes the directory and everything in it. Follows no symbolic link.
#[allow(clippy::disallowed_methods, reason = "only merges and tests write in the recorded directory")]
fn remove_tree(path: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Ends all processes in the merge worktree `path`, except this process. They are found by their
/// environment variable [`MERGE_WORKTREE_VARIABLE`], whose value is `path`.
///
/// # Errors
///
/// [`Error::Io`] if the processes cannot be listed, or if one does not end.
pub fn end_processes_in_merge_worktree(path: &Path) -> Result<(), Error> {
    end_processes_with_variable(MERGE_WORKTREE_VARIABLE, path)
}
