//! Why a worktree is not removed: what would be lost with it, or who is in it.

use std::fmt;
use std::path::PathBuf;

/// One kind of unsaved work, or of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeepReason {
    /// Changes in the index.
    Staged(Vec<PathBuf>),
    /// Changes of tracked files, not in the index; conflicts too.
    Unstaged(Vec<PathBuf>),
    /// Files that git does not know.
    Untracked(Vec<PathBuf>),
    /// Files that git ignores, but for what says itself that it can be made anew (CACHEDIR.TAG).
    Ignored(Vec<PathBuf>),
    /// Files that git was told not to look at: assume-unchanged, skip-worktree.
    IgnoredByStatus(Vec<PathBuf>),
    /// So many commits on its branch that no other branch has, here or on a remote.
    Unpushed(u64),
    /// So many commits on a detached HEAD that no branch has.
    Detached(u64),
    /// So many commits that only its own log of HEAD still holds.
    ReflogOnly(u64),
    /// So many stashes were made in it.
    Stashed(usize),
    /// `git worktree lock`, and why.
    Locked(String),
    /// A lock of git's: a command is under way in it, or was killed.
    GitLockFile(PathBuf),
    /// Begun and not ended: a rebase, a merge…
    OperationInProgress(&'static str),
    /// A submodule with work of its own.
    Submodule(PathBuf),
    /// Processes that are in it or have a file of it open.
    InUse(Vec<u32>),
    /// Nothing is at its path, and git has it on its list all the same.
    PathMissing,
    /// It could not be looked at, so nobody knows.
    CheckFailed(String),
}

const NOT_THERE: &str = "not there, and git has it on its list: moved away, or its disk is not mounted; \
                         git worktree prune forgets what is gone for good";

/// On one line, whatever is in the name of a file or in the words of who locked it.
impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = match self {
            KeepReason::Staged(files) => file_list_text("staged", files),
            KeepReason::Unstaged(files) => file_list_text("changed and not staged", files),
            KeepReason::Untracked(files) => file_list_text("untracked", files),
            KeepReason::Ignored(files) => file_list_text("ignored", files),
            KeepReason::IgnoredByStatus(files) => file_list_text("hidden from git status", files),
            KeepReason::Unpushed(n) => format!("{} that no other branch has", commit_count_text(*n)),
            KeepReason::Detached(n) => format!("{} on no branch", commit_count_text(*n)),
            KeepReason::ReflogOnly(n) => format!("{} that only its log still holds", commit_count_text(*n)),
            KeepReason::Stashed(1) => "1 stash".to_owned(),
            KeepReason::Stashed(n) => format!("{n} stashes"),
            KeepReason::Locked(why) if why.is_empty() => "locked".to_owned(),
            KeepReason::Locked(why) => format!("locked: {why}"),
            KeepReason::GitLockFile(lock) => format!("a git command is under way ({})", lock.display()),
            KeepReason::OperationInProgress(what) => format!("in the middle of a {what}"),
            KeepReason::Submodule(path) => format!("work in the submodule {}", path.display()),
            KeepReason::InUse(pids) => format!("in use by {}", process_list_text(pids)),
            KeepReason::PathMissing => NOT_THERE.to_owned(),
            KeepReason::CheckFailed(why) => why.clone(),
        };
        f.write_str(&escape_controls(&told))
    }
}

/// Text without line ends and other control characters: `\n` and the like in their place.
pub fn escape_controls(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// As many as a sentence takes.
const MAX_LISTED_FILES: usize = 3;

fn file_list_text(what: &str, files: &[PathBuf]) -> String {
    let names: Vec<String> =
        files.iter().take(MAX_LISTED_FILES).map(|file| file.display().to_string()).collect();
    let more = if files.len() > MAX_LISTED_FILES {
        format!(" and {} more", files.len() - MAX_LISTED_FILES)
    } else {
        String::new()
    };
    format!("{what}: {}{more}", names.join(", "))
}

fn commit_count_text(n: u64) -> String {
    if n == 1 { "1 commit".to_owned() } else { format!("{n} commits") }
}

fn process_list_text(pids: &[u32]) -> String {
    let all: Vec<String> = pids.iter().map(u32::to_string).collect();
    if all.len() == 1 { format!("process {}", all[0]) } else { format!("processes {}", all.join(", ")) }
}
