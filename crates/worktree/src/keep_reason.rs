//! Reasons to keep a worktree: unsaved work, or programs that use it.
//!
//! This file has the type and its text. `WorktreeRecord::keep_reasons`, in
//! `find_reasons_to_keep_worktree.rs`, finds the reasons of a worktree.

use protocol::shell_quote::shell_quote;
use std::fmt;
use std::path::PathBuf;

/// One reason to keep a worktree. `Display` writes it as one line for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// Files with staged changes.
    Staged(Vec<PathBuf>),
    /// Tracked files with changes that are not staged, or in conflict.
    Unstaged(Vec<PathBuf>),
    /// A filter that only the repository's own configuration defines. teamd does not run such a
    /// filter, so unchanged files that use it may look changed.
    FilterNotRun(String),
    /// Untracked files.
    Untracked(Vec<PathBuf>),
    /// Ignored files, except those in a directory with a `CACHEDIR.TAG`.
    Ignored(Vec<PathBuf>),
    /// Files that git does not check for changes: assume-unchanged or skip-worktree.
    IgnoredByStatus(Vec<PathBuf>),
    /// Number of commits on the worktree's branches that no other branch has, local or remote.
    Unpushed(u64),
    /// The name of a remote that has branches which this repository does not track. Commits that
    /// were pushed to such a branch count as [`KeepReason::Unpushed`].
    NarrowRemote(String),
    /// Number of commits of a detached HEAD that no branch and no tag has.
    Detached(u64),
    /// Number of commits that only the worktree's own references and the reflog of its HEAD have.
    ReflogOnly(u64),
    /// The worktree's HEAD has no reflog, so nothing shows which commits the worktree had.
    ReflogMissing,
    /// A git repository in a cache directory of the worktree. The path is relative to the worktree.
    Repository(PathBuf),
    /// Number of stashes that were made in the worktree.
    Stashed(usize),
    /// The worktree is locked by `git worktree lock`, for this reason. The text may be empty.
    Locked(String),
    /// The lock file of a git command that runs in the worktree, or that was killed.
    GitLockFile(PathBuf),
    /// An operation in progress, such as `rebase` or `merge`.
    OperationInProgress(&'static str),
    /// A submodule with unsaved work. The path is relative to the worktree. If the submodule is not
    /// checked out, this is the absolute path of its repository instead.
    Submodule(PathBuf),
    /// Ids of processes that use the worktree: their working directory, root directory, program or
    /// an open file is in the worktree.
    InUse(Vec<u32>),
    /// A file system is mounted at this path, which is the worktree or in it.
    MountPoint(PathBuf),
    /// The worktree's directory does not exist, but git still lists the worktree.
    PathMissing,
    /// The worktree could not be checked, because git did not find this program.
    ProgramMissing(String),
    /// The worktree could not be checked because of this error.
    CheckFailed(String),
}

/// The text of [`KeepReason::PathMissing`].
const PATH_MISSING_TEXT: &str = "the directory is missing, but git still lists the worktree: it was moved, or its disk is not mounted; \
                         git worktree prune removes the entry";

/// Writes the reason as one line without control characters. Control characters in a path, or in
/// the reason that a person gave to `git worktree lock`, are escaped.
impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            KeepReason::Staged(files) => file_list_text("staged", files),
            KeepReason::Unstaged(files) => file_list_text("changed and not staged", files),
            KeepReason::FilterNotRun(filter) => format!(
                "the filter {filter} did not run, because the repository's own configuration defines it: \
                 if these files are unchanged, define it with git config --global"
            ),
            KeepReason::Untracked(files) => file_list_text("untracked", files),
            KeepReason::Ignored(files) => file_list_text("ignored", files),
            KeepReason::IgnoredByStatus(files) => file_list_text("hidden from git status", files),
            KeepReason::Unpushed(n) => format!("{} that no other branch has", commit_count_text(*n)),
            KeepReason::NarrowRemote(remote) => format!(
                "this clone does not track every branch of {remote}: if the commits are pushed, see them with \
                 git fetch {0} {1}",
                shell_quote(remote),
                shell_quote(&format!("+refs/heads/*:refs/remotes/{remote}/*"))
            ),
            KeepReason::Detached(n) => format!("{} on no branch", commit_count_text(*n)),
            KeepReason::ReflogOnly(n) => format!("{} that only its log still holds", commit_count_text(*n)),
            KeepReason::ReflogMissing => {
                "its log is missing: commits that no branch has cannot be found".to_owned()
            }
            KeepReason::Repository(path) => format!("a git repository at {}", path.display()),
            KeepReason::Stashed(1) => "1 stash".to_owned(),
            KeepReason::Stashed(n) => format!("{n} stashes"),
            KeepReason::Locked(reason) if reason.is_empty() => "locked".to_owned(),
            KeepReason::Locked(reason) => format!("locked: {reason}"),
            KeepReason::GitLockFile(lock) => format!("a git command is under way ({})", lock.display()),
            KeepReason::OperationInProgress(operation) => format!("in the middle of a {operation}"),
            KeepReason::Submodule(path) => format!("work in the submodule {}", path.display()),
            KeepReason::InUse(pids) => format!("in use by {}", process_list_text(pids)),
            KeepReason::MountPoint(path) => format!("a file system is mounted at {}", path.display()),
            KeepReason::PathMissing => PATH_MISSING_TEXT.to_owned(),
            KeepReason::ProgramMissing(program) => {
                format!("it cannot be checked: git cannot find {program}, which a filter needs")
            }
            KeepReason::CheckFailed(error) => error.clone(),
        };
        f.write_str(&escape_controls(&text))
    }
}

/// Replaces control characters by escapes, such as `\n`.
pub fn escape_controls(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// How many files a reason names.
const MAX_LISTED_FILES: usize = 3;

/// Returns `KIND: FILE, FILE, FILE and N more`.
fn file_list_text(kind: &str, files: &[PathBuf]) -> String {
    let names: Vec<String> =
        files.iter().take(MAX_LISTED_FILES).map(|file| file.display().to_string()).collect();
    let remainder = if files.len() > MAX_LISTED_FILES {
        format!(" and {} more", files.len() - MAX_LISTED_FILES)
    } else {
        String::new()
    };
    format!("{kind}: {}{remainder}", names.join(", "))
}

/// Returns `1 commit` or `N commits`.
fn commit_count_text(n: u64) -> String {
    if n == 1 { "1 commit".to_owned() } else { format!("{n} commits") }
}

/// Returns `process PID` or `processes PID, PID`.
fn process_list_text(pids: &[u32]) -> String {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    if pids.len() == 1 { format!("process {}", pids[0]) } else { format!("processes {}", pids.join(", ")) }
}
