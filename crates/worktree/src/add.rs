//! Filling the directory that was planned. The repository's post-checkout hook runs, as it does for the user; its no
//! is no reason to give up what git has made.

use crate::error::{Error, io_error};
use crate::git_command::{Git, GitEnvironment, READ_TIMEOUT, WRITE_TIMEOUT};
use crate::proposal::{WorktreeProposal, branch_ref};
use crate::record::{WorktreeRecord, WorktreeState};
use std::ffi::OsStr;
use std::fs::{File, TryLockError, remove_dir};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

impl WorktreeProposal {
    /// Makes it what was planned, and sees that it is that; gives the directory in it that `cwd` stands for. What
    /// could not be filled is taken back as far as nothing is in it.
    ///
    /// # Errors
    /// As of every call of git; [`Error::NotOurs`] where something else came of it.
    pub fn add(&self, surroundings: &GitEnvironment) -> Result<PathBuf, Error> {
        if !self.exists {
            self.create_worktree(surroundings).inspect_err(|_| undo(&self.record, surroundings))?;
        }
        self.record.private_git_dir()?;
        self.subdirectory_in_worktree()
    }

    fn create_worktree(&self, surroundings: &GitEnvironment) -> Result<(), Error> {
        let tree = &self.record;
        // One after the other: git looks at all worktrees of the repository, and stumbles over one that another git has
        // begun and not finished.
        let _alone = lock_repository(&tree.common_git_dir, WRITE_TIMEOUT)?;
        let git = Git::in_directory(&self.cwd, surroundings);
        if tree.branch_created {
            create_branch(tree, &git)?;
        }
        let to = [tree.path.as_os_str(), OsStr::new(&tree.branch)];
        let arguments = [["worktree", "add"], ["--quiet", "--"]].concat();
        let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).chain(to).collect();
        let verb = "make the worktree";
        let made = git.with_hooks().run(verb, &arguments, b"", WRITE_TIMEOUT)?;
        if !made.is_success() && !is_complete(tree, surroundings)? {
            return Err(made.to_error(verb));
        }
        if !tree.is_on_its_branch() {
            return Err(tree.not_recorded("it is not on the branch that it was made for"));
        }
        Ok(())
    }

    /// The same subdirectory, or what the commit has of the way to it. Never out of the worktree by a link.
    fn subdirectory_in_worktree(&self) -> Result<PathBuf, Error> {
        let cwd = self.record.path.join(&self.subdirectory);
        let there = cwd.ancestors().find(|path| path.is_dir()).unwrap_or(&self.record.path);
        let cwd = there.canonicalize().map_err(io_error("enter", there))?;
        Ok(if cwd.starts_with(&self.record.path) { cwd } else { self.record.path.clone() })
    }
}

/// Alone with the repository, as long as the file is open.
pub(crate) fn lock_repository(repository: &Path, patience: Duration) -> Result<File, Error> {
    let file = File::open(repository).map_err(io_error("open", repository))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(io_error("lock", repository)(error)),
    }
    // A lock has no deadline of its own. The thread that gets it too late finds nobody, and lets it go.
    let (got, waits) = channel();
    let wait = move || drop(got.send(file.lock().map(|()| file)));
    std::thread::Builder::new().spawn(wait).map_err(io_error("wait for", repository))?;
    match waits.recv_timeout(patience) {
        Ok(locked) => locked.map_err(io_error("lock", repository)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(Error::RepositoryBusy { repository: repository.to_owned(), timeout: patience })
        }
    }
}

/// A step of its own, which fails where somebody has made one of that name; its log says whose it is.
fn create_branch(tree: &WorktreeRecord, git: &Git<'_>) -> Result<(), Error> {
    let (verb, made, branch) = ("make the branch", branch_log_message(tree), branch_ref(&tree.branch));
    let arguments = ["update-ref", "--create-reflog", "-m", &made, &branch, &tree.base_commit, ""];
    git.run(verb, &arguments, b"", READ_TIMEOUT)?.stdout_or_error(verb).map(drop)
}

/// No other directory had that number then.
fn branch_log_message(tree: &WorktreeRecord) -> String {
    format!("teamd: for the worktree with the inode {}", tree.inode)
}

/// Whether the branch is the one that was made for it, by the beginning of its log; not, where there is no such branch.
pub(crate) fn was_created_for(tree: &WorktreeRecord, git: &Git<'_>) -> Result<bool, Error> {
    let arguments = ["log", "--walk-reflogs", "--format=%gs", &branch_ref(&tree.branch), "--"];
    let log = git.run("look at a branch", &arguments, b"", READ_TIMEOUT)?;
    let first = log.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    Ok(log.is_success() && first == Some(branch_log_message(tree).as_bytes()))
}

/// Git's no was a hook's: everything is there.
fn is_complete(tree: &WorktreeRecord, surroundings: &GitEnvironment) -> Result<bool, Error> {
    if !matches!(tree.state(), Ok(WorktreeState::Present(_))) {
        return Ok(false);
    }
    let arguments = ["diff", "--quiet", "--ignore-submodules", "HEAD", "--"];
    Ok(tree.git(surroundings).run("look at the worktree", &arguments, b"", READ_TIMEOUT)?.is_success())
}

/// Git takes back itself what it has begun; the directory was ours, and the branch goes where it is.
fn undo(tree: &WorktreeRecord, surroundings: &GitEnvironment) {
    if tree.state().is_ok_and(|found| found == WorktreeState::Empty) {
        remove_dir(&tree.path).ok();
        crate::remove::delete_unused_branch(tree, surroundings).ok();
    }
}

/// Whether the branch is where it began.
pub(crate) fn is_at_base(tree: &WorktreeRecord, git: &Git<'_>) -> Result<bool, Error> {
    let arguments = ["rev-parse", "--verify", "--quiet", &branch_ref(&tree.branch)];
    let tip = git.run("look at a branch", &arguments, b"", READ_TIMEOUT)?;
    Ok(tip.is_success() && tip.stdout.trim_ascii_end() == tree.base_commit.as_bytes())
}
