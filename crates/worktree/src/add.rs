//! Filling the directory that was planned. The repository's post-checkout hook runs, as it does for the user; its no
//! is no reason to give up what git has made.

use crate::error::{Error, io};
use crate::git::{Git, LOOK, Surroundings, WRITE};
use crate::plan::{Plan, reference};
use crate::tree::{Found, Tree};
use std::ffi::OsString;
use std::fs::{File, remove_dir};
use std::path::PathBuf;

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
        let git = Git::within(&self.cwd, surroundings).hooked();
        let mut arguments: Vec<OsString> = ["worktree", "add", "--quiet"].map(OsString::from).into();
        if tree.new_branch {
            arguments.extend(["--no-track", "-b", &tree.branch].map(OsString::from));
        }
        let from = if tree.new_branch { &tree.base } else { &tree.branch };
        arguments.extend(["--".into(), tree.path.clone().into(), from.into()]);
        let verb = "make the worktree";
        // One after the other: git looks at all worktrees of the repository, and stumbles over one that another git has
        // begun and not finished.
        let repository = File::open(&tree.repository).map_err(io("open", &tree.repository))?;
        repository.lock().map_err(io("lock", &tree.repository))?;
        let made = git.run(verb, &arguments, b"", WRITE)?;
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

/// Git's no was a hook's: everything is there.
fn is_whole(tree: &Tree, surroundings: &Surroundings) -> Result<bool, Error> {
    if !matches!(tree.look(), Ok(Found::Ours(_))) {
        return Ok(false);
    }
    let arguments = ["diff", "--quiet", "--ignore-submodules", "HEAD", "--"];
    Ok(tree.git(surroundings).run("look at the worktree", &arguments, b"", LOOK)?.is_yes())
}

/// Git takes back itself what it has begun; the directory was ours, and the branch has nothing yet.
fn take_back(tree: &Tree, surroundings: &Surroundings) {
    if tree.look().is_ok_and(|found| found == Found::Empty) {
        remove_dir(&tree.path).ok();
        crate::remove::drop_branch(tree, surroundings).ok();
    }
}

/// Whether the branch is where it began.
pub(crate) fn is_at_base(tree: &Tree, git: &Git<'_>) -> bool {
    let arguments = ["rev-parse", "--verify", "--quiet", &reference(&tree.branch)];
    git.word("look at a branch", &arguments).is_ok_and(|tip| tip == tree.base)
}
