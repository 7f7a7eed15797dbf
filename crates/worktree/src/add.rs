//! Filling the directory that was planned. The repository's post-checkout hook runs, as it does for the user; its no
//! is no reason to give up what git has made.

use crate::error::{Error, io};
use crate::git::{Git, LOOK, Surroundings, WRITE};
use crate::plan::{Plan, reference};
use crate::tree::{Found, Tree};
use std::ffi::OsStr;
use std::fs::{File, TryLockError, remove_dir};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

impl Plan {
    /// Makes it what was planned, and sees that it is that; gives the directory in it that `cwd` stands for. What
    /// could not be filled is taken back as far as nothing is in it.
    ///
    /// # Errors
    /// As of every call of git; [`Error::NotOurs`] where something else came of it.
    pub fn add(&self, surroundings: &Surroundings) -> Result<PathBuf, Error> {
        if !self.is_there {
            self.fill(surroundings).inspect_err(|_| take_back(&self.tree, surroundings))?;
        }
        self.tree.private()?;
        self.entered()
    }

    fn fill(&self, surroundings: &Surroundings) -> Result<(), Error> {
        let tree = &self.tree;
        // One after the other: git looks at all worktrees of the repository, and stumbles over one that another git has
        // begun and not finished.
        let _alone = alone(&tree.repository, WRITE)?;
        let git = Git::within(&self.cwd, surroundings);
        if tree.new_branch {
            make_branch(tree, &git)?;
        }
        let to = [tree.path.as_os_str(), OsStr::new(&tree.branch)];
        let arguments = [["worktree", "add"], ["--quiet", "--"]].concat();
        let arguments: Vec<&OsStr> = arguments.into_iter().map(OsStr::new).chain(to).collect();
        let verb = "make the worktree";
        let made = git.hooked().run(verb, &arguments, b"", WRITE)?;
        if !made.is_yes() && !is_whole(tree, surroundings)? {
            return Err(made.no(verb));
        }
        if !tree.is_on_its_branch() {
            return Err(tree.not_ours("it is not on the branch that it was made for"));
        }
        Ok(())
    }

    /// The same subdirectory, or what the commit has of the way to it. Never out of the worktree by a link.
    fn entered(&self) -> Result<PathBuf, Error> {
        let cwd = self.tree.path.join(&self.within);
        let there = cwd.ancestors().find(|path| path.is_dir()).unwrap_or(&self.tree.path);
        let cwd = there.canonicalize().map_err(io("enter", there))?;
        Ok(if cwd.starts_with(&self.tree.path) { cwd } else { self.tree.path.clone() })
    }
}

/// Alone with the repository, as long as the file is open.
pub(crate) fn alone(repository: &Path, patience: Duration) -> Result<File, Error> {
    let file = File::open(repository).map_err(io("open", repository))?;
    match file.try_lock() {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(error)) => return Err(io("lock", repository)(error)),
    }
    // A lock has no deadline of its own. The thread that gets it too late finds nobody, and lets it go.
    let (got, waits) = channel();
    let wait = move || drop(got.send(file.lock().map(|()| file)));
    std::thread::Builder::new().spawn(wait).map_err(io("wait for", repository))?;
    match waits.recv_timeout(patience) {
        Ok(locked) => locked.map_err(io("lock", repository)),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(Error::Locked { repository: repository.to_owned(), patience })
        }
    }
}

/// A step of its own, which fails where somebody has made one of that name; its log says whose it is.
fn make_branch(tree: &Tree, git: &Git<'_>) -> Result<(), Error> {
    let (verb, made, branch) = ("make the branch", words(tree), reference(&tree.branch));
    let arguments = ["update-ref", "--create-reflog", "-m", &made, &branch, &tree.base, ""];
    git.run(verb, &arguments, b"", LOOK)?.yes(verb).map(drop)
}

/// No other directory had that number then.
fn words(tree: &Tree) -> String {
    format!("teamd: for the worktree with the inode {}", tree.inode)
}

/// Whether the branch is the one that was made for it, by the beginning of its log; not, where there is no such branch.
pub(crate) fn is_made_for(tree: &Tree, git: &Git<'_>) -> Result<bool, Error> {
    let arguments = ["log", "--walk-reflogs", "--format=%gs", &reference(&tree.branch), "--"];
    let log = git.run("look at a branch", &arguments, b"", LOOK)?;
    let first = log.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    Ok(log.is_yes() && first == Some(words(tree).as_bytes()))
}

/// Git's no was a hook's: everything is there.
fn is_whole(tree: &Tree, surroundings: &Surroundings) -> Result<bool, Error> {
    if !matches!(tree.look(), Ok(Found::Ours(_))) {
        return Ok(false);
    }
    let arguments = ["diff", "--quiet", "--ignore-submodules", "HEAD", "--"];
    Ok(tree.git(surroundings).run("look at the worktree", &arguments, b"", LOOK)?.is_yes())
}

/// Git takes back itself what it has begun; the directory was ours, and the branch goes where it is.
fn take_back(tree: &Tree, surroundings: &Surroundings) {
    if tree.look().is_ok_and(|found| found == Found::Empty) {
        remove_dir(&tree.path).ok();
        crate::remove::drop_branch(tree, surroundings).ok();
    }
}

/// Whether the branch is where it began.
pub(crate) fn is_at_base(tree: &Tree, git: &Git<'_>) -> Result<bool, Error> {
    let arguments = ["rev-parse", "--verify", "--quiet", &reference(&tree.branch)];
    let tip = git.run("look at a branch", &arguments, b"", LOOK)?;
    Ok(tip.is_yes() && tip.stdout.trim_ascii_end() == tree.base.as_bytes())
}
