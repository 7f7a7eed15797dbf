//! The end of a worktree: git removes it, without force where nothing is in it that git would mind, and only what is
//! recorded. Its branch goes where it has nothing of its own.

use crate::add::{is_at_base, is_made_for};
use crate::commits::only_in_log;
use crate::error::{Error, io};
use crate::git::{Git, LOOK, Surroundings, WRITE};
use crate::mark::Marks;
use crate::reason::Reason;
use crate::save::Saved;
use crate::submodule;
use crate::tree::{Found, Tree};
use std::ffi::OsStr;
use std::fs::remove_dir;
use std::path::Path;

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    /// There was nothing any more, but for its branch perhaps.
    WasGone,
    /// It is removed; its branch had nothing of its own, and went too.
    Wholly,
    /// It is removed, and its branch is there.
    ButItsBranch,
    /// It is there, since something would be lost.
    Not(Vec<Reason>),
}

impl Tree {
    /// Removes it if nothing is lost with it: looked for here, once more.
    ///
    /// # Errors
    /// [`Error::NotOurs`], and then nothing was touched; as of every call of git.
    pub fn remove(&self, surroundings: &Surroundings) -> Result<Removed, Error> {
        let reasons = self.unsaved(surroundings)?;
        if !reasons.is_empty() {
            return Ok(Removed::Not(reasons));
        }
        match self.look()? {
            // Whoever removed it may have been killed ahead of the rest.
            Found::Missing => return self.swept(surroundings).map(|_| Removed::WasGone),
            Found::Empty => remove_dir(&self.path).map_err(io("remove", &self.path))?,
            Found::Ours(private) => {
                // Git removes none with a submodule otherwise; that nothing is in it was seen just now.
                let force = has_submodules(&self.path, &private, surroundings)?;
                self.git_removes(if force { &["--force"] } else { &[] }, surroundings)?;
            }
        }
        self.swept(surroundings)
    }

    /// Removes it with all that is in it, which was saved before.
    ///
    /// # Errors
    /// As [`Tree::remove`]; [`Error::Changed`] where it was written to after it was saved.
    pub fn discard(&self, saved: &Saved, surroundings: &Surroundings) -> Result<Removed, Error> {
        self.private()?;
        if Marks::of(&self.path, surroundings)? != saved.marks {
            return Err(Error::Changed(self.path.clone()));
        }
        // Twice: also one that is locked.
        self.git_removes(&["--force", "--force"], surroundings)?;
        self.swept(surroundings)
    }

    fn git_removes(&self, force: &[&str], surroundings: &Surroundings) -> Result<(), Error> {
        let git = Git::of_repository(&self.repository, surroundings);
        let mut arguments = vec![OsStr::new("worktree"), OsStr::new("remove")];
        arguments.extend(force.iter().map(OsStr::new));
        arguments.extend([OsStr::new("--"), self.path.as_os_str()]);
        let verb = "remove the worktree";
        git.run(verb, &arguments, b"", WRITE)?.yes(verb).map(drop)
    }

    /// The directory beside the repository goes when it is empty.
    fn swept(&self, surroundings: &Surroundings) -> Result<Removed, Error> {
        self.path.parent().map(remove_dir);
        let dropped = drop_branch(self, surroundings)?;
        Ok(if dropped { Removed::Wholly } else { Removed::ButItsBranch })
    }
}

/// Where it was made for the worktree, is where it began, and its log holds nothing else. Git has the last word.
pub(crate) fn drop_branch(tree: &Tree, surroundings: &Surroundings) -> Result<bool, Error> {
    let git = Git::of_repository(&tree.repository, surroundings);
    if !is_made_for(tree, &git)? || !is_at_base(tree, &git)? || only_in_log(tree, &git)? > 0 {
        return Ok(false);
    }
    let arguments = ["branch", "--delete", "--quiet", "--", &tree.branch];
    Ok(git.run("remove the branch", &arguments, b"", LOOK)?.is_yes())
}

fn has_submodules(tree: &Path, private: &Path, surroundings: &Surroundings) -> Result<bool, Error> {
    let links = submodule::links(&Git::within(tree, surroundings))?;
    Ok(!links.is_empty() || !submodule::repositories(&private.join("modules"))?.is_empty())
}
