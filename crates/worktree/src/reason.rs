//! Why a worktree is not removed: what would be lost with it, or who is in it.

use std::fmt;
use std::path::PathBuf;

/// One kind of unsaved work, or of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// Changes in the index.
    Staged(Vec<PathBuf>),
    /// Changes of tracked files, not in the index; conflicts too.
    Unstaged(Vec<PathBuf>),
    /// Files that git does not know.
    Untracked(Vec<PathBuf>),
    /// Files that git ignores, but for what says itself that it can be made anew (CACHEDIR.TAG).
    Ignored(Vec<PathBuf>),
    /// Files that git was told not to look at: assume-unchanged, skip-worktree.
    Hidden(Vec<PathBuf>),
    /// So many commits on its branch that no other branch has, here or on a remote.
    Unpushed(u64),
    /// So many commits on a detached HEAD that no branch has.
    Detached(u64),
    /// So many commits that only its own log of HEAD still holds.
    Abandoned(u64),
    /// So many stashes were made in it.
    Stashed(usize),
    /// `git worktree lock`, and why.
    Locked(String),
    /// A lock of git's: a command is under way in it, or was killed.
    Busy(PathBuf),
    /// Begun and not ended: a rebase, a merge…
    Midway(&'static str),
    /// A submodule with work of its own.
    Submodule(PathBuf),
    /// Processes that are in it or have a file of it open.
    InUse(Vec<u32>),
    /// It could not be looked at, so nobody knows.
    Unknown(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Staged(files) => named(f, "staged", files),
            Reason::Unstaged(files) => named(f, "changed and not staged", files),
            Reason::Untracked(files) => named(f, "untracked", files),
            Reason::Ignored(files) => named(f, "ignored", files),
            Reason::Hidden(files) => named(f, "hidden from git status", files),
            Reason::Unpushed(n) => write!(f, "{} that no other branch has", commits(*n)),
            Reason::Detached(n) => write!(f, "{} on no branch", commits(*n)),
            Reason::Abandoned(n) => write!(f, "{} that only its log still holds", commits(*n)),
            Reason::Stashed(1) => write!(f, "1 stash"),
            Reason::Stashed(n) => write!(f, "{n} stashes"),
            Reason::Locked(why) if why.is_empty() => write!(f, "locked"),
            Reason::Locked(why) => write!(f, "locked: {why}"),
            Reason::Busy(lock) => write!(f, "a git command is under way ({})", lock.display()),
            Reason::Midway(what) => write!(f, "in the middle of a {what}"),
            Reason::Submodule(path) => write!(f, "work in the submodule {}", path.display()),
            Reason::InUse(pids) => write!(f, "in use by {}", processes(pids)),
            Reason::Unknown(why) => write!(f, "{why}"),
        }
    }
}

/// As many as a sentence takes.
const NAMED: usize = 3;

fn named(f: &mut fmt::Formatter<'_>, what: &str, files: &[PathBuf]) -> fmt::Result {
    let names: Vec<String> = files.iter().take(NAMED).map(|file| file.display().to_string()).collect();
    let more = if files.len() > NAMED { format!(" and {} more", files.len() - NAMED) } else { String::new() };
    write!(f, "{what}: {}{more}", names.join(", "))
}

fn commits(n: u64) -> String {
    if n == 1 { "1 commit".to_owned() } else { format!("{n} commits") }
}

fn processes(pids: &[u32]) -> String {
    let all: Vec<String> = pids.iter().map(u32::to_string).collect();
    if all.len() == 1 { format!("process {}", all[0]) } else { format!("processes {}", all.join(", ")) }
}
