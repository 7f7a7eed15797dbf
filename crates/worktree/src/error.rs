//! Errors of this crate. Each names the path and the action that failed.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why an action on a worktree or a repository failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no git in `PATH`.
    #[error("cannot find git")]
    NoGit,
    /// The directory is not in a git repository.
    #[error("cannot create a worktree for {}: it is in no git repository", .0.display())]
    NoRepository(PathBuf),
    /// The repository has no commit, so there is nothing to check out.
    #[error("cannot create a worktree of {}: the repository has no commit yet", .0.display())]
    NoCommit(PathBuf),
    /// Git does not accept the name as the name of a branch, or all numbered names are taken.
    #[error("cannot use {0:?} as a branch: it is not a valid name of a branch")]
    InvalidBranch(String),
    /// The path can't be stored in the record, which is UTF-8.
    #[error("cannot use {}: the path is not UTF-8", .0.display())]
    PathNotUtf8(PathBuf),
    /// Another user could change the directory for worktrees.
    #[error("cannot create a worktree in {}: {reason}", path.display())]
    UntrustedDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with the directory, as a clause such as `it is a symbolic link`.
        reason: String,
    },
    /// The branch is a symbolic reference, so another branch would move with it.
    #[error("cannot move {0}: it is a symbolic reference to another branch")]
    SymbolicBranch(String),
    /// A git operation in a worktree needs the branch, such as a rebase.
    #[error("cannot move {branch}: git uses it in a worktree: {reason}")]
    BranchInUse {
        /// The branch.
        branch: String,
        /// What git says.
        reason: String,
    },
    /// The branch is checked out in another worktree.
    #[error("cannot check out {branch}: it is checked out in {}", worktree.display())]
    BranchTaken {
        /// The branch.
        branch: String,
        /// The worktree in which it is checked out.
        worktree: PathBuf,
    },
    /// Another branch prevents the new one: git cannot have the branches `a` and `a/b` at once.
    #[error("cannot create the branch {branch}: there is a branch {obstacle}, and git cannot have both")]
    BranchBlocked {
        /// The branch that cannot be created.
        branch: String,
        /// The branch that exists.
        obstacle: String,
    },
    /// Git does not know the user's name and address.
    #[error("cannot commit in {}: git does not know your name and e-mail address", .0.display())]
    NoIdentity(PathBuf),
    /// The commit at which a branch was to start does not exist.
    #[error("cannot start at {0}: the repository has no such commit")]
    NoSuchCommit(String),
    /// The branch exists, and does not contain the commit at which it was to start.
    #[error("cannot start {branch} at {start}: the branch exists already, without {start}")]
    BranchDiverged {
        /// The branch.
        branch: String,
        /// The commit, as the user has named it.
        start: String,
    },
    /// The branch has commits that the fetched commit lacks, so it cannot move forward.
    #[error("cannot move the branch {branch} of {}: it has other commits", repository.display())]
    OwnCommits {
        /// The branch.
        branch: String,
        /// The common git directory of the repository.
        repository: PathBuf,
    },
    /// `.worktreeinclude` names too many files to copy, or too large ones. Nothing was copied.
    #[error(
        "cannot copy the files that .worktreeinclude names: they are {files} files with {} MiB",
        bytes >> 20
    )]
    TooManyIncludedFiles {
        /// How many files there are.
        files: usize,
        /// Their bytes.
        bytes: u64,
    },
    /// What exists at the path is not the recorded worktree. Nothing was changed.
    #[error("cannot use {} as a worktree: {reason}", path.display())]
    NotRecorded {
        /// The path.
        path: PathBuf,
        /// What differs, as a clause such as `it does not exist`.
        reason: &'static str,
    },
    /// A file system is mounted in the worktree. Its files would be deleted with the worktree.
    #[error("cannot remove {}: a file system is mounted at {}", worktree.display(), mount.display())]
    MountPoint {
        /// The worktree.
        worktree: PathBuf,
        /// The directory at which the file system is mounted.
        mount: PathBuf,
    },
    /// The worktree was written to after it was saved, or while it was saved.
    #[error("cannot remove {}: it changed while it was saved", .0.display())]
    ChangedWhileSaving(PathBuf),
    /// Git failed.
    #[error("cannot {action}: {stderr}")]
    Git {
        /// What git was run for, such as `list the stashes`.
        action: String,
        /// The first and last lines of git's standard error.
        stderr: String,
    },
    /// Git failed because it did not find a program that the configuration names, such as git-lfs.
    #[error(
        "cannot {action}: git cannot find {program}, which a setting of the repository or the user names"
    )]
    ProgramMissing {
        /// What git was run for, such as `create the worktree`.
        action: String,
        /// The program.
        program: String,
    },
    /// Git did not exit in time and was killed.
    #[error("cannot {action}: git did not finish within {} s", timeout.as_secs())]
    Timeout {
        /// What git was run for, such as `list the stashes`.
        action: String,
        /// The time limit of the call.
        timeout: Duration,
    },
    /// Other processes create worktrees in the repository, and did not finish in time.
    #[error("cannot create a worktree of {}: other processes have created worktrees there for more than {} s", repository.display(), timeout.as_secs())]
    RepositoryBusy {
        /// The common git directory of the repository.
        repository: PathBuf,
        /// How long this process has waited.
        timeout: Duration,
    },
    /// A system call failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was done, as a verb phrase, such as `read`.
        action: &'static str,
        /// The path that it was done with.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// Returns a function for `map_err` that makes an [`Error::Io`].
pub(crate) fn io_error<E: Into<std::io::Error>>(
    action: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> Error {
    move |error| Error::Io { action, path: path.to_owned(), source: error.into() }
}
