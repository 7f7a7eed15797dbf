//! What can go wrong, told with path and verb.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why something could not be done with a worktree.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no git in the PATH.
    #[error("cannot find git")]
    NoGit,
    /// The directory belongs to no repository.
    #[error("cannot make a worktree for {}: it is in no git repository", .0.display())]
    NoRepository(PathBuf),
    /// A repository without a commit has nothing to begin from.
    #[error("cannot make a worktree of {}: it has no commit yet", .0.display())]
    NoCommit(PathBuf),
    /// The name is none that git takes for a branch.
    #[error("cannot use {0:?} as a branch: git takes no such name")]
    InvalidBranch(String),
    /// It could not be written down.
    #[error("cannot use {}: the path is not UTF-8", .0.display())]
    PathNotUtf8(PathBuf),
    /// Another worktree has it checked out.
    #[error("cannot check out {branch}: {} has it", worktree.display())]
    BranchTaken {
        /// The branch.
        branch: String,
        /// Where it is checked out.
        worktree: PathBuf,
    },
    /// What is at a path is not what was recorded.
    #[error("cannot touch {}: {why}", path.display())]
    NotRecorded {
        /// The path.
        path: PathBuf,
        /// What differs.
        why: &'static str,
    },
    /// It was written to between two looks.
    #[error("cannot remove {}: it changed while it was saved", .0.display())]
    ChangedWhileSaving(PathBuf),
    /// Git said no.
    #[error("cannot {action}: {stderr}")]
    Git {
        /// What git was to do.
        action: String,
        /// Its last words.
        stderr: String,
    },
    /// Git did not end in time, and was ended.
    #[error("cannot {action}: git did not end within {} s", timeout.as_secs())]
    Timeout {
        /// What git was to do.
        action: String,
        /// How long it had.
        timeout: Duration,
    },
    /// Another worktree is made in the repository, for longer than anybody waits.
    #[error("cannot make a worktree of {}: others are being made there, for more than {} s", repository.display(), timeout.as_secs())]
    RepositoryBusy {
        /// What the repository's worktrees share.
        repository: PathBuf,
        /// How long was waited.
        timeout: Duration,
    },
    /// The system said no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was to be done.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// For `map_err`.
pub(crate) fn io_error<E: Into<std::io::Error>>(verb: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
    move |error| Error::Io { action: verb, path: path.to_owned(), source: error.into() }
}
