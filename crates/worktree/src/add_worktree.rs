//! Creates the worktree that a proposal describes: git checks out the files into the empty
//! directory that `propose_worktree` has created.
//!
//! The post-checkout hook of the repository runs, as it does for the user. If only the hook fails,
//! the worktree is kept.

use crate::create_delete_rename_branch_of_worktree::{create_branch, delete_merged_branch};
use crate::error::{Error, io_error};
use crate::git_command::{Git, WRITE_TIMEOUT};
use crate::git_environment::GitEnvironment;
use crate::propose_worktree::WorktreeProposal;
use crate::worktree_record::{WorktreeRecord, WorktreeState};
use std::ffi::OsStr;
use std::fs::{File, TryLockError, remove_dir};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Makes git create the reflog of the worktree's HEAD, even if the repository's configuration
/// switches reflogs off. Once a reflog exists, git always appends to it. teamd needs the reflog,
/// because no other record has the commits that a reset or a checkout leaves behind.
const REFLOG_CONFIG: &str = "core.logAllRefUpdates=true";

impl WorktreeProposal {
    /// Lets git create the proposed worktree, and checks the result. A worktree that exists already
    /// is only checked. Returns the directory in which the agent works. For example, if the
    /// caller's working directory is `REPO/src`, the agent works in `WORKTREE/src`.
    ///
    /// If git fails, the new branch and the worktree's directory are removed, unless the directory
    /// has files.
    ///
    /// # Errors
    ///
    /// [`Error::NotRecorded`] if the result is not the proposed worktree;
    /// [`Error::RepositoryBusy`]; the errors of git commands ([`Error::Git`], [`Error::NoGit`],
    /// [`Error::ProgramMissing`], [`Error::Timeout`], [`Error::Io`]).
    pub fn add(&self, environment: &GitEnvironment) -> Result<PathBuf, Error> {
        if !self.exists {
            self.create_worktree(environment).inspect_err(|_| undo(&self.record, environment))?;
        }
        self.record.private_git_dir()?;
        self.subdirectory_in_worktree()
    }

    /// Creates the branch if needed, and runs `git worktree add`.
    fn create_worktree(&self, environment: &GitEnvironment) -> Result<(), Error> {
        let record = &self.record;
        // The lock keeps other processes from creating a worktree of the same repository at the
        // same time. `git worktree add` reads all worktrees of the repository, and fails if one of
        // them is only partly created.
        let _lock = lock_repository(&record.common_git_dir, WRITE_TIMEOUT)?;
        let git = Git::in_directory(&self.cwd, environment);
        if record.branch_created {
            create_branch(record, &git)?;
        }
        let destination = [record.path.as_os_str(), OsStr::new(&record.branch)];
        let arguments = [["-c", REFLOG_CONFIG], ["worktree", "add"], ["--quiet", "--"]].concat();
        let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).chain(destination).collect();
        let action = "create the worktree";
        let output = git.with_programs().run(action, &arguments, b"", WRITE_TIMEOUT)?;
        if !output.is_success() && !is_complete(record, environment)? {
            return Err(output.to_error(action));
        }
        if !record.is_on_its_branch() {
            return Err(record.not_recorded("it is not on the branch that it was created for"));
        }
        Ok(())
    }

    /// Returns the directory in the worktree that corresponds to the working directory in the
    /// proposal. If the commit that is checked out does not have this directory, the result is the
    /// nearest parent that exists. If a symbolic link leads out of the worktree, the result is the
    /// top of the worktree.
    fn subdirectory_in_worktree(&self) -> Result<PathBuf, Error> {
        let cwd = self.record.path.join(&self.subdirectory);
        let existing_dir = cwd.ancestors().find(|path| path.is_dir()).unwrap_or(&self.record.path);
        let cwd = existing_dir.canonicalize().map_err(io_error("find", existing_dir))?;
        Ok(if cwd.starts_with(&self.record.path) { cwd } else { self.record.path.clone() })
    }
}

/// Takes the lock for creating worktrees of a repository. The lock is held until the returned file
/// is closed.
///
/// # Errors
///
/// [`Error::RepositoryBusy`] if another process holds the lock for longer than `timeout`;
/// [`Error::Io`].
pub(crate) fn lock_repository(repository: &Path, timeout: Duration) -> Result<File, Error> {
    let file = File::open(repository).map_err(io_error("open", repository))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(io_error("lock", repository)(error)),
    }
    // Waiting for a file lock has no timeout, so a separate thread waits. If the thread gets the
    // lock after the timeout, nothing receives the file from the thread. The file is then closed,
    // which releases the lock.
    let (sender, receiver) = channel();
    let wait_for_lock = move || drop(sender.send(file.lock().map(|()| file)));
    std::thread::Builder::new().spawn(wait_for_lock).map_err(io_error("wait for", repository))?;
    match receiver.recv_timeout(timeout) {
        Ok(result) => result.map_err(io_error("lock", repository)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(Error::RepositoryBusy { repository: repository.to_owned(), timeout })
        }
    }
}

/// Whether the worktree is complete although `git worktree add` has reported a failure. If so, only
/// the post-checkout hook has failed, and the worktree can be used.
fn is_complete(record: &WorktreeRecord, environment: &GitEnvironment) -> Result<bool, Error> {
    if !matches!(record.state(), Ok(WorktreeState::Present(_))) {
        return Ok(false);
    }
    let arguments =
        ["diff", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules", "HEAD", "--"];
    // Filters run as in the checkout. Without them, unchanged files would look changed.
    record.git(environment).with_programs().succeeds("check the worktree", &arguments)
}

/// Undoes a failed creation: removes the branch and the worktree's directory, and the directory
/// above it if that is empty. Does nothing if the worktree's directory has files. Usually git has
/// removed the files that it created.
fn undo(record: &WorktreeRecord, environment: &GitEnvironment) {
    if !matches!(record.state(), Ok(WorktreeState::Empty | WorktreeState::Missing)) {
        return;
    }
    remove_dir(&record.path).ok();
    record.path.parent().map(remove_dir);
    delete_merged_branch(record, environment).ok();
}
