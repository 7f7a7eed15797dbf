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
    /// Nothing is at its path, and git has it on its list all the same.
    NotThere,
    /// It could not be looked at, so nobody knows.
    Unknown(String),
}

const NOT_THERE: &str = "not there, and git has it on its list: moved away, or its disk is not mounted; \
                         git worktree prune forgets what is gone for good";

/// On one line, whatever is in the name of a file or in the words of who locked it.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = match self {
            Reason::Staged(files) => named("staged", files),
            Reason::Unstaged(files) => named("changed and not staged", files),
            Reason::Untracked(files) => named("untracked", files),
            Reason::Ignored(files) => named("ignored", files),
            Reason::Hidden(files) => named("hidden from git status", files),
            Reason::Unpushed(n) => format!("{} that no other branch has", commits(*n)),
            Reason::Detached(n) => format!("{} on no branch", commits(*n)),
            Reason::Abandoned(n) => format!("{} that only its log still holds", commits(*n)),
            Reason::Stashed(1) => "1 stash".to_owned(),
            Reason::Stashed(n) => format!("{n} stashes"),
            Reason::Locked(why) if why.is_empty() => "locked".to_owned(),
            Reason::Locked(why) => format!("locked: {why}"),
            Reason::Busy(lock) => format!("a git command is under way ({})", lock.display()),
            Reason::Midway(what) => format!("in the middle of a {what}"),
            Reason::Submodule(path) => format!("work in the submodule {}", path.display()),
            Reason::InUse(pids) => format!("in use by {}", processes(pids)),
            Reason::NotThere => NOT_THERE.to_owned(),
            Reason::Unknown(why) => why.clone(),
        };
        f.write_str(&flat(&told))
    }
}

/// Text without line ends and other control characters: `\n` and the like in their place.
pub fn flat(text: &str) -> String {
    let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(shown).collect()
}

/// As many as a sentence takes.
const NAMED: usize = 3;

fn named(what: &str, files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().take(NAMED).map(|file| file.display().to_string()).collect();
    let more = if files.len() > NAMED { format!(" and {} more", files.len() - NAMED) } else { String::new() };
    format!("{what}: {}{more}", names.join(", "))
}

fn commits(n: u64) -> String {
    if n == 1 { "1 commit".to_owned() } else { format!("{n} commits") }
}

fn processes(pids: &[u32]) -> String {
    let all: Vec<String> = pids.iter().map(u32::to_string).collect();
    if all.len() == 1 { format!("process {}", all[0]) } else { format!("processes {}", all.join(", ")) }
}
