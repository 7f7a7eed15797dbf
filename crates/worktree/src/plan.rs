//! What a worktree will be, decided before anything of git is changed: an old one that goes on, or an empty
//! directory with a branch to be. The caller writes it down, and only then has it filled.

use crate::error::{Error, io};
use crate::git::{Git, LOOK, Surroundings};
use crate::repository::Repository;
use crate::tree::{Found, Tree};
use std::fs::{DirBuilder, create_dir, read_to_string, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many names are tried.
const TRIES: u32 = 1_000;

/// Who wants one, and where.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// A directory in the repository, absolute.
    pub cwd: PathBuf,
    /// What its directory is called.
    pub name: String,
    /// The branch that was asked for: checked out if it is there and free, else made.
    pub branch: Option<String>,
    /// The branch to be made where none was asked for; a taken one gets `-2`, `-3`.
    pub usual_branch: String,
    /// What was made for the same one before.
    pub before: Vec<Tree>,
}

/// A worktree to be, or to be gone on with.
#[derive(Debug, Clone)]
pub struct Plan {
    /// To be recorded before [`Plan::add`].
    pub tree: Tree,
    /// It is there already, from before.
    pub is_there: bool,
    /// Where `cwd` is in the repository's tree.
    pub within: PathBuf,
    /// The directory that was asked for.
    pub cwd: PathBuf,
}

/// Decides, and makes the directory: empty, so that nothing is lost if nobody comes back for it.
///
/// # Errors
/// [`Error::NoRepository`], [`Error::NoCommit`], [`Error::BadBranch`], [`Error::BranchTaken`], and as of every call
/// of git.
pub fn plan(wanted: &Wanted, surroundings: &Surroundings) -> Result<Plan, Error> {
    let repository = Repository::of(&wanted.cwd, surroundings)?;
    let before = wanted.before.iter().find(|tree| goes_on(tree, wanted, &repository));
    if let Some(tree) = before {
        let (tree, cwd) = (tree.clone(), wanted.cwd.clone());
        return Ok(Plan { tree, is_there: true, within: repository.within, cwd });
    }
    let branches = Branches { git: Git::within(&wanted.cwd, surroundings) };
    let (branch, new_branch) = branches.choose(wanted)?;
    let base = branches.base(&branch, new_branch, wanted)?;
    let path = directory(&repository.beside, &wanted.name)?;
    for path in [&path, &repository.common] {
        path.to_str().ok_or_else(|| Error::BadPath(path.clone()))?;
    }
    let inode = symlink_metadata(&path).map_err(io("look at", &path))?.ino();
    let tree = Tree { path, branch, new_branch, repository: repository.common, base, inode };
    Ok(Plan { tree, is_there: false, within: repository.within, cwd: wanted.cwd.clone() })
}

/// In the middle of a rebase it is on no branch, and goes on all the same.
fn goes_on(tree: &Tree, wanted: &Wanted, repository: &Repository) -> bool {
    let fits = match &wanted.branch {
        Some(branch) => tree.branch == *branch,
        None => is_numbered(&tree.branch, &wanted.usual_branch),
    };
    let Ok(Found::Ours(private)) = tree.look() else { return false };
    let detached = || read_to_string(private.join("HEAD")).is_ok_and(|head| !head.starts_with("ref: "));
    fits && tree.repository == repository.common && (tree.is_on_its_branch() || detached())
}

fn is_numbered(branch: &str, usual: &str) -> bool {
    let rest = branch.strip_prefix(usual);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok())
    })
}

struct Branches<'a> {
    git: Git<'a>,
}

impl Branches<'_> {
    /// Which, and whether it is to be made.
    fn choose(&self, wanted: &Wanted) -> Result<(String, bool), Error> {
        let Some(branch) = &wanted.branch else { return Ok((self.free(&wanted.usual_branch)?, true)) };
        let verb = "look at a branch";
        let checked = self.git.run(verb, &["check-ref-format", "--branch", branch.as_str()], b"", LOOK)?;
        if branch.starts_with('-') || !checked.is_yes() || checked.stdout.trim_ascii() != branch.as_bytes() {
            return Err(Error::BadBranch(branch.clone()));
        }
        if !self.exists(branch)? {
            return Ok((branch.clone(), true));
        }
        let format = "--format=%(worktreepath)";
        let at = self.git.line(verb, &["for-each-ref", format, &reference(branch)])?;
        if at.is_empty() {
            return Ok((branch.clone(), false));
        }
        Err(Error::BranchTaken { branch: branch.clone(), at: at.into() })
    }

    fn free(&self, usual: &str) -> Result<String, Error> {
        for branch in numbered(usual) {
            if !self.exists(&branch)? {
                return Ok(branch);
            }
        }
        Err(Error::BadBranch(usual.to_owned()))
    }

    fn exists(&self, branch: &str) -> Result<bool, Error> {
        let arguments = ["show-ref", "--verify", "--quiet", &reference(branch)];
        Ok(self.git.run("look at a branch", &arguments, b"", LOOK)?.is_yes())
    }

    fn base(&self, branch: &str, new: bool, wanted: &Wanted) -> Result<String, Error> {
        let from = if new { "HEAD".to_owned() } else { reference(branch) };
        let arguments = ["rev-parse", "--verify", "--quiet", &format!("{from}^{{commit}}")];
        self.git.word("find the commit to begin from", &arguments).map_err(|error| match error {
            Error::Git { .. } => Error::NoCommit(wanted.cwd.clone()),
            error => error,
        })
    }
}

pub(crate) fn reference(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

fn numbered(name: &str) -> impl Iterator<Item = String> {
    (1..TRIES).map(move |n| if n == 1 { name.to_owned() } else { format!("{name}-{n}") })
}

/// Made by us, just now: of two who want the same name one gets the next.
fn directory(beside: &Path, name: &str) -> Result<PathBuf, Error> {
    DirBuilder::new().recursive(true).create(beside).map_err(io("make", beside))?;
    let beside = beside.canonicalize().map_err(io("find", beside))?;
    for name in numbered(name) {
        let path = beside.join(name);
        failpoint::hit_before_call("worktree.mkdir").map_err(io("make", &path))?;
        match create_dir(&path) {
            Ok(()) => {
                failpoint::hit("worktree.made");
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io("make", &path)(error)),
        }
    }
    Err(io("make", &beside.join(name))(std::io::Error::from(ErrorKind::AlreadyExists)))
}
